package queue

import (
	"strings"
	"testing"
)

func TestPortion_goesByTheBytesThatCame(t *testing.T) {
	t.Parallel()
	p := firstEntries
	for range 10 {
		p.took([]string{"name", "small"})
	}
	if p != MaxBatch {
		t.Errorf("%d small ones at a time, want %d", p, MaxBatch)
	}
	for range 20 {
		p.took([]string{"name", strings.Repeat("x", mostBytes)})
	}
	if p != 1 {
		t.Errorf("%d large ones at a time, want 1", p)
	}
	p = 8
	if p.took([]string{"name", strings.Repeat("x", mostBytes-4)}); p != 8 {
		t.Errorf("%d after as many bytes as there should be, want 8", p)
	}
}
