package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

// An error that quotes a payload or an answer has no control character, nor one that changes the direction of text. It still
// matches the same errors.
func TestErrors_areOneCleanLine(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context()) // so that nothing is looked up
	cancel()
	run := handlers.Exec(handlers.ExecConfig{})
	for what, got := range map[string]error{
		"a host":     newHTTP(t, handlers.HTTPConfig{}).Handle(over, &task.Task{Payload: payload("url", "http://a%C2%9B31m%E2%80%AE.invalid/")}),
		"a command":  run.Handle(t.Context(), &task.Task{Payload: payload("command", []string{"no\x1b[31m\u009b\u202eprog"})}),
		"no command": run.Handle(t.Context(), &task.Task{Payload: payload("command", []string{"/no/\x1b[31m\u009b\u202eprog"})}),
	} {
		if got == nil {
			t.Errorf("%s: no error", what)
			continue
		}
		text := got.Error()
		if strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) >= 0 {
			t.Errorf("%s: %q", what, text)
		}
		if what == "a command" && !errors.Is(got, exec.ErrNotFound) {
			t.Errorf("%s: %v is not %v", what, got, exec.ErrNotFound)
		}
		if handlers.Report(got) != text {
			t.Errorf("%s: reported as %q", what, fmt.Sprint(handlers.Report(got)))
		}
	}
}
