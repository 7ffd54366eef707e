package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

// The page has what the program prints.
func TestTables_areThoseOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	tables(&b, &measured)
	for _, table := range strings.Split(b.String(), "\n\n") {
		if !strings.Contains(string(page), strings.TrimSpace(table)) {
			t.Errorf("docs/scaling.md lacks what go run ./scale prints:\n%s", table)
		}
	}
}

// A herd is as late as its primary, or as its workers if those are fewer, and jitter that is long enough makes it be in time.
func TestHerd_waitsForWhatIsScarce(t *testing.T) {
	t.Parallel()
	h := herd{slots: 1000, serve: time.Millisecond, workers: 1000, run: time.Millisecond}
	if late := h.play(); late.last != time.Second || late.p50 != 501*time.Millisecond {
		t.Errorf("the primary is scarce: %+v", late)
	}
	h.workers, h.run = 1, 10*time.Millisecond
	if late := h.play(); late.last != 999*10*time.Millisecond+time.Millisecond {
		t.Errorf("workers are scarce: %+v", late)
	}
	h.workers, h.run, h.jitter = 1000, time.Millisecond, 100*time.Second
	if late := h.play(); late.p99 > 5*time.Millisecond || late.last < time.Millisecond {
		t.Errorf("with jitter: %+v", late)
	}
}
