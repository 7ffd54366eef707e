package secret_test

import (
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/task"
)

// The value that an error quotes may be a URL of any kind, and may be cut before its @.
func TestText_ofQuotedValues(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"https://user:" + strings.Repeat("SECRET", 13) + "@host/":    `"https://…"`,
		"postgres://user:" + strings.Repeat("SECRET", 13) + "@host/": `"postgres://…"`,
		"user:" + strings.Repeat("SECRET", 13) + "@host":             `"…"`,
		"https://user:a@" + strings.Repeat("SECRET", 13) + "@host/":  `"https://…"`,
		"https://user:SEC RET@host/":                                 `"https://…@host/"`,
		`https://user:SEC"RET@host/`:                                 `"https://…@host/"`,
		`https://user:SEC": RET@host/`:                               `"https://…@host/"`,
		"https://user:12/SECRET@host/":                               `"https://…@host/"`,
		"https://SECRETredis://x@host/":                              `"https://…@host/"`,
		"//user:SECRET@host/":                                        `"//…@host/"`,
		"user:SECRET@host:6379":                                      `"…@host:6379"`,
		`"user:SECRET@host`:                                          `"\"…@host"`,
		":SECRET@host:6379":                                          `"…@host:6379"`,
		"redis=user:SECRET@host":                                     `"redis=…@host"`,
		"user:SECRET redis://x@h":                                    `"…@h"`,
		"file:redis://u:SECRET@h":                                    `"file:redis://u:…@h"`,
		"redis://u:SEC\" RET@h":                                      `"redis://u:…@h"`,
		"file:https://u:SECRET@h/x":                                  `"file:https://…@h/x"`,
		"https://shop.example/a":                                     `"https://shop.example/a"`,
		"warm@2026-10-10T00:00:00Z":                                  `"warm@2026-10-10T00:00:00Z"`,
		"12:30":                                                      `"12:30"`,
		`{"to":"a@b"}`:                                               `"{\"to\":\"a@b\"}"`,
	} {
		err := &task.FieldError{Field: "namespace", Value: value, Reason: "bad", Hint: `not "x@y"`}
		if got := secret.Text(err.Error()); got != "namespace "+want+`: bad (not "x@y")` {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
		if got := secret.Value(value); strings.Contains(got, "SEC") || strings.Contains(got, "RET") {
			t.Errorf("%s alone: %s", value, got)
		}
	}
	const two = `redis.url "redis://h": differs from "file:https://u:x@h/x" (unset a@b)`
	if got := secret.Text(two); got != `redis.url "redis://h": differs from "file:https://…@h/x" (unset a@b)` {
		t.Error(got)
	}
}
