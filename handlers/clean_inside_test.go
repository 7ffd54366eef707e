package handlers

import (
	"errors"
	"net"
	"testing"
)

// The text of another's error is made fit for a line, and the error stays what it was.
func TestClean(t *testing.T) {
	t.Parallel()
	lookup := &net.DNSError{Err: "no such host", Name: "a\u009b31m\u202e\x1b]0;x\a.invalid", IsNotFound: true}
	err := clean(lookup)
	if got, want := err.Error(), "lookup a 31m ]0;x .invalid: no such host"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !errors.Is(err, lookup) {
		t.Error("it is another error")
	}
	if plain := errors.New("plain, with  blanks"); clean(plain) != plain {
		t.Error("a plain one is not left as it is")
	}
	if clean(nil) != nil {
		t.Error("of nothing")
	}
}
