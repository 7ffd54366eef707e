package handlers_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

func TestHide_leavesOutWhatIsSecret(t *testing.T) {
	t.Parallel()
	const value = `s3cr"et/value`
	secret := &task.Task{Type: "pay", Payload: []byte(`{"card":"s3cr\"et/value","name":"ann"}`), Secret: []string{"card"}}
	for _, text := range []string{
		value, fmt.Sprintf("%q", value), `s3cr\"et/value`, url.QueryEscape(value), base64.StdEncoding.EncodeToString([]byte(value)),
	} {
		err := handlers.Hide(secret, handlers.Dead(fmt.Errorf("ann sent %s", text)))
		if got := err.Error(); strings.Contains(got, "value") || strings.Contains(got, text) || !strings.Contains(got, "ann sent") || !handlers.IsDead(err) {
			t.Errorf("%s: %s", text, got)
		}
	}
	err := handlers.Hide(secret, fmt.Errorf("check: %w", &task.FieldError{Field: "payload.card", Value: value, Reason: "no " + value}))
	var f *task.FieldError
	if !errors.As(err, &f) || f.Value != task.Masked || f.Reason != "no "+task.Masked || f.Field != "payload.card" {
		t.Errorf("%+v", f)
	}
	plain := errors.New(value)
	if handlers.Hide(&task.Task{Payload: secret.Payload}, plain) != plain || handlers.Hide(secret, nil) != nil {
		t.Error("nothing is secret, or there is no error: it stays")
	}
}
