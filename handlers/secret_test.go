package handlers_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/task"
)

func TestHide_leavesOutWhatIsSecret(t *testing.T) {
	t.Parallel()
	const value = `s3cr"et/value`
	marked := &task.Task{Type: "pay", Payload: []byte(`{"card":"s3cr\"et/value","name":"ann"}`), Secret: []string{"card"}}
	for _, text := range []string{
		value, fmt.Sprintf("%q", value), `s3cr\"et/value`, url.QueryEscape(value), base64.StdEncoding.EncodeToString([]byte(value)),
	} {
		err := handlers.Hide(marked, handlers.Dead(fmt.Errorf("ann sent %s", text)))
		if got := err.Error(); strings.Contains(got, "value") || strings.Contains(got, text) || !strings.Contains(got, "ann sent") || !handlers.IsDead(err) {
			t.Errorf("%s: %s", text, got)
		}
	}
	err := handlers.Hide(marked, fmt.Errorf("check: %w", &task.FieldError{Field: "payload.card", Value: value, Reason: "no " + value}))
	var f *task.FieldError
	if !errors.As(err, &f) || f.Value != secret.Masked || f.Reason != "no "+secret.Masked || f.Field != "payload.card" {
		t.Errorf("%+v", f)
	}
	plain := errors.New(value)
	if handlers.Hide(&task.Task{Payload: marked.Payload}, plain) != plain || handlers.Hide(marked, nil) != nil {
		t.Error("nothing is secret, or there is no error: it stays")
	}
}

// The error of a request shows its URL without login and query, and escaped as it is sent.
func TestHide_knowsASecretURLInEverySpelling(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"http://ann:pw@127.0.0.1:1/hush/hook", "http://127.0.0.1:1/hush hook", "HTTP://127.0.0.1:1/h\u00fcsh/hook?x=hook"} {
		x := &task.Task{ID: "x", Type: "http", Payload: []byte(`{"url":"` + url + `"}`), Secret: []string{"url"}}
		err := handlers.Hide(x, handlers.HTTP(handlers.HTTPConfig{}).Handle(t.Context(), x))
		if err == nil || strings.Contains(err.Error(), "hook") || strings.Contains(err.Error(), "sh/") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
