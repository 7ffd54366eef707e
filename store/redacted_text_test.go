package store_test

import (
	"strings"
	"testing"

	"github.com/onbeat/onbeat/store"
)

func TestRedactedText_leavesTheRest(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain": "plain",
		"redis://u:…@h:1: redis is unreachable":        "redis://u:…@h:1: redis is unreachable",
		"redis://h:1: task \"x@5\"":                    "redis://h:…@5\"", // not to be told apart: a password may have spaces
		"(redis://, rediss://h:1/0).":                  "(redis://, rediss://h:1/0).",
		"such as " + example + ")":                     "such as " + example + ")",
		`"redis://…": in a password # is and @ is %40`: `"redis://…": in a password # is and @ is %40`,
		"redis://u:a@h, redis-cluster://v:b@i,j":       "redis://u:…@h, redis-cluster://v:…@i,j",
		"redis:/u:b@h":                                 "redis:/…",
		"see https://h/a@b and http://h:80/a@b":        "see https://h/a@b and http://h:80/a@b",
		`Post "https://u:p@h/x": refused`:              `Post "https://…@h/x": refused`,
		"amqps+x://token@h":                            "amqps+x://…@h",
		"dial redis://token@h:1: refused":              "dial redis://…@h:1: refused",
	} {
		if got := store.RedactedText(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if again := store.RedactedText(want); again != want && !strings.Contains(text, "x@5") {
			t.Errorf("%s becomes %s", want, again)
		}
	}
}

// example stands in the hint of a refused URL.
const example = "redis://user:password@127.0.0.1:6379/0"
