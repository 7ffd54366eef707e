package secret

import (
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/field"
)

func TestText_leavesTheRest(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain": "plain",
		"redis://u:…@h:1: redis is unreachable":        "redis://u:…@h:1: redis is unreachable",
		"redis://h:1: task \"x@5\"":                    "redis://h:…@5\"", // not to be told apart: a password may have spaces
		"(redis://, rediss://h:1/0).":                  "(redis://, rediss://h:1/0).",
		"such as " + ExampleURL + ")":                  "such as " + ExampleURL + ")",
		`"redis://…": in a password # is and @ is %40`: `"redis://…": in a password # is and @ is %40`,
		"redis://u:a@h, redis-cluster://v:b@i,j":       "redis://u:…@h, redis-cluster://v:…@i,j",
		"redis:/u:b@h":                                 "redis:/…",
		"see https://h/a@b and http://h:80/a@b":        "see https://h/a@b and http://h:80/a@b",
		`Post "https://u:p@h/x": refused`:              `Post "https://…@h/x": refused`,
		"amqps+x://token@h":                            "amqps+x://…@h",
		"dial redis://token@h:1: refused":              "dial redis://…@h:1: refused",
	} {
		if got := Text(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if again := Text(want); again != want && !strings.Contains(text, "x@5") {
			t.Errorf("%s becomes %s", want, again)
		}
	}
}

// What an error quotes may be a URL of any kind, and cut before its @.
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
		err := &field.Error{Field: "namespace", Value: value, Reason: "bad", Hint: `not "x@y"`}
		if got := Text(err.Error()); got != "namespace "+want+`: bad (not "x@y")` {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
		if got := Value(value); strings.Contains(got, "SEC") || strings.Contains(got, "RET") {
			t.Errorf("%s alone: %s", value, got)
		}
	}
	const two = `redis.url "redis://h": differs from "file:https://u:x@h/x" (unset a@b)`
	if got := Text(two); got != `redis.url "redis://h": differs from "file:https://…@h/x" (unset a@b)` {
		t.Error(got)
	}
}
