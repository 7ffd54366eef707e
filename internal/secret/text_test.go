package secret

import (
	"strings"
	"testing"
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
