package task_test

import (
	"strings"
	"testing"

	"github.com/onbeat/onbeat/task"
)

func TestCause_isWhatErrorsHaveInCommon(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                    "",
		" out of paper":                       "out of paper",
		"order 81234 is unknown\nstack of it": "order … is unknown",
		"dial tcp 127.0.0.1:40211: refused":   "dial tcp 127.0.0.1:…: refused",
		"POST http://shop/: 503 Service Unavailable": "POST http://shop/: 503 Service Unavailable",
		"exit status 137":                           "exit status 137",
		"no answer within 1m30.5s":                  "no answer within …",
		"closed at 2030-01-31T09:00:00.123Z by it":  "closed at … by it",
		"key 018f2a3b-77c1-7e90-a1b2-c3d4e5f60718!": "key …!",
		"a  b\tc": "a b c",
	} {
		if got := task.Cause(text); got != want {
			t.Errorf("the cause of %q is %q, want %q", text, got, want)
		}
	}
}

func TestCause_isShort(t *testing.T) {
	t.Parallel()
	if got := task.Cause(strings.Repeat("longer ", 1000)); len(got) > 210 {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

// A cause filters as well as an error of it does.
func FuzzCause(f *testing.F) {
	for _, s := range []string{"", "a 12345", "x 5s", strings.Repeat("a", 198) + "5seconds", "1ms2", "\xff1234", "…"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := task.Cause(text)
		if again := task.Cause(once); again != once {
			t.Fatalf("the cause of %q is %q, and its cause is %q", text, once, again)
		}
	})
}
