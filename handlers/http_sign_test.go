package handlers_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/task"
)

func TestHTTP_signsWithAKey(t *testing.T) {
	const text = "a key of the shop, long enough"
	t.Setenv("SHOP_KEY", text)
	t.Setenv("CODED_KEY", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	t.Setenv("TOKEN", "t0ken")
	var got http.Header
	var body []byte
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		body, _ = io.ReadAll(r.Body)
		if r.URL.Path == "/elsewhere" {
			http.Redirect(w, r, strings.Replace("http://"+r.Host, "127.0.0.1", "localhost", 1), http.StatusSeeOther)
		}
	})
	h := newHTTP(t, handlers.HTTPConfig{PassEnv: []string{"SHOP_KEY", "CODED_KEY", "TOKEN"}})
	for reference, key := range map[string]string{"${SHOP_KEY}": text, "${CODED_KEY}": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"} {
		for _, sent := range []any{nil, "text of ${TOKEN}", map[string]any{"a": "${TOKEN}"}} {
			if err := ask(t, h, "url", s.URL, "body", sent, "key", reference); err != nil {
				t.Fatal(err)
			}
			bytes, _ := notify.Key(key)
			if err := notify.Verify(bytes, got, body, time.Now()); err != nil || got.Get("Webhook-Id") != got.Get("Onbeat-Task-Id") {
				t.Errorf("%s of %v: %v, of %v", reference, sent, err, got)
			}
			if err := notify.Verify([]byte("another key, long enough"), got, body, time.Now()); !errors.Is(err, notify.ErrSignature) {
				t.Errorf("another key: %v", err)
			}
		}
	}
	if err := ask(t, h, "url", s.URL+"/elsewhere", "key", "${SHOP_KEY}"); err != nil || got.Get("Webhook-Signature") != "" {
		t.Errorf("to another host: %v, %q", err, got.Get("Webhook-Signature"))
	}
	if err := ask(t, h, "url", s.URL); err != nil || got.Get("Webhook-Id")+got.Get("Webhook-Signature") != "" {
		t.Errorf("without a key: %v, %v", err, got)
	}
}

func TestHTTP_refusesAKeyThatSignsNothing(t *testing.T) {
	t.Setenv("SHORT", "15 bytes, short")
	t.Setenv("BROKEN", "whsec_%%% s3cr3t %%%%%%%%%")
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("asked") })
	h := newHTTP(t, handlers.HTTPConfig{PassEnv: []string{"SHORT", "BROKEN"}})
	for _, key := range []string{"${SHORT}", "${BROKEN}", "${UNSET_OF_ONBEAT}", "${HOME}"} {
		err := ask(t, h, "url", s.URL, "key", key)
		if !errors.Is(err, handlers.ErrEnv) || !strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "15 bytes, short") {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, key := range []string{"s3cr3t of many bytes", "${A}${B}", "x${A}", "$${A}"} {
		err := ask(t, h, "url", s.URL, "key", key)
		if f, ok := errors.AsType[*task.FieldError](err); !ok || f.Field != "payload.key" || strings.Contains(err.Error(), "s3cr3t") || !handlers.IsDead(err) {
			t.Errorf("%s: %v", key, err)
		}
	}
	err := ask(t, h, "url", s.URL, "key", "${SHORT}", "headers", map[string]string{"webhook-id": "1"})
	if f, ok := errors.AsType[*task.FieldError](err); !ok || f.Field != "payload.headers" {
		t.Errorf("a header of the signature: %v", err)
	}
}
