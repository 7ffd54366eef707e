package handlers_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/handlers"
)

func TestDead_readsAndUnwrapsLikeItsCause(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("run: %w", handlers.Dead(fmt.Errorf("read: %w", io.ErrUnexpectedEOF)))
	if err.Error() != "run: read: unexpected EOF" {
		t.Errorf("Error = %q", err)
	}
	if !handlers.IsDead(err) || !errors.Is(err, handlers.ErrDead) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v: IsDead %t, Is EOF %t", err, handlers.IsDead(err), errors.Is(err, io.ErrUnexpectedEOF))
	}
	if handlers.IsDead(io.EOF) || handlers.IsDead(nil) {
		t.Error("an error of another kind is dead")
	}
	if err := handlers.Dead(nil); err != nil {
		t.Errorf("Dead(nil) = %v", err)
	}
}

func TestRetryAfter_carriesItsDelay(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("run: %w", handlers.RetryAfter(io.EOF, time.Minute))
	if d, ok := handlers.RetryDelay(err); !ok || d != time.Minute {
		t.Errorf("RetryDelay = %s, %t", d, ok)
	}
	if err.Error() != "run: EOF" || !errors.Is(err, io.EOF) {
		t.Errorf("Error = %q", err)
	}
	if d, ok := handlers.RetryDelay(handlers.RetryAfter(io.EOF, -5)); !ok || d != 0 {
		t.Errorf("a negative delay is %s, %t", d, ok)
	}
	if d, ok := handlers.RetryDelay(io.EOF); ok || d != 0 {
		t.Errorf("RetryDelay(EOF) = %s, %t", d, ok)
	}
	if err := handlers.RetryAfter(nil, time.Minute); err != nil {
		t.Errorf("RetryAfter(nil) = %v", err)
	}
	both := handlers.RetryAfter(handlers.Dead(io.EOF), time.Minute)
	if _, ok := handlers.RetryDelay(both); !ok || !handlers.IsDead(both) {
		t.Error("one hides the other")
	}
}

func TestPanicError_unwrapsAnErrorOnly(t *testing.T) {
	t.Parallel()
	if err := error(&handlers.PanicError{Value: io.EOF}); !errors.Is(err, io.EOF) || err.Error() != "panic: EOF" {
		t.Errorf("%v", err)
	}
	if err := error(&handlers.PanicError{Value: "boom\n\x1b[31mred"}); errors.Unwrap(err) != nil || err.Error() != "panic: boom [31mred" {
		t.Errorf("%q", err)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"":                       nil,
		"EOF":                    io.EOF,
		"run: panic: boom\nline": fmt.Errorf("run: %w", &handlers.PanicError{Value: "boom", Stack: []byte("line")}),
	} {
		if got := handlers.Report(err); got != want {
			t.Errorf("Report(%v) = %q, want %q", err, got, want)
		}
	}
}

func TestPanicError_boundsItsText(t *testing.T) {
	t.Parallel()
	err := &handlers.PanicError{Value: strings.Repeat("한", 5000)}
	if n := len(err.Error()); n > 1100 || !strings.HasSuffix(err.Error(), "한…") {
		t.Errorf("%d bytes", n)
	}
}
