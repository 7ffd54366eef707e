package handlers_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
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

// A service repeats in its answer a part of what it was sent.
func TestHide_knowsThePartsThatAServiceRepeats(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, basic := r.BasicAuth()
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case r.URL.Path != "/":
			http.Error(w, "no webhook "+path.Base(r.URL.Path), http.StatusNotFound)
		case basic:
			http.Error(w, "login failed for "+user+":"+password, http.StatusUnauthorized)
		case r.Method == http.MethodPost:
			w.Header().Set("Location", "http://"+token+".example/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		default:
			http.Error(w, "invalid token "+token, http.StatusUnauthorized)
		}
	})
	for _, x := range []struct{ method, path, authorization, hidden, shown string }{
		{"GET", "/", "Bearer tok-8f3a9c", "8f3a9c", "invalid token ***"},
		{"POST", "/", "Bearer tok-8f3a9c", "8f3a9c", "to another host: ***.example"},
		{"GET", "/", "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:hunter2!")), "hunter2", "login failed for ***"},
		{"GET", "/seg/T024/XyZsecretHook99", "Bearer x", "XyZsecret", "no webhook ***"},
	} {
		call := &task.Task{ID: "x", Type: "http", Secret: []string{"url", "headers.Authorization"},
			Payload: payload("method", x.method, "url", s.URL+x.path, "headers", map[string]string{"Authorization": x.authorization}, "body", "b")}
		if x.method == "GET" {
			call.Payload = payload("method", x.method, "url", s.URL+x.path, "headers", map[string]string{"Authorization": x.authorization})
		}
		err := handlers.Hide(call, newHTTP(t, handlers.HTTPConfig{}).Handle(t.Context(), call))
		if err == nil || strings.Contains(err.Error(), x.hidden) || !strings.Contains(err.Error(), x.shown) {
			t.Errorf("%s %s %s: %v", x.method, x.path, x.authorization, err)
		}
	}
}
