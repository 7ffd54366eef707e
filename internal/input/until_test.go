//go:build unix

package input_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/input"
)

// A pipe that no program writes to, and one that a program keeps open, hold nobody up who was told to end.
func TestFile_endsWithItsContext(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	read := func() error {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		done := make(chan error, 1)
		go func() { _, err := input.File(ctx, name, "file"); done <- err }()
		select {
		case err := <-done:
			return err
		case <-time.After(10 * time.Second):
			return errors.New("it still waits")
		}
	}
	if err := read(); !errors.Is(err, context.Canceled) {
		t.Errorf("without a writer: %v", err)
	}
	w, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if err := read(); !errors.Is(err, context.Canceled) {
		t.Errorf("with a writer that says nothing: %v", err)
	}
}

func TestFile_readsAPipe(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() { _ = os.WriteFile(name, []byte("said"), 0o600) }()
	if data, err := input.File(t.Context(), name, "file"); err != nil || string(data) != "said" {
		t.Errorf("%q, %v", data, err)
	}
}
