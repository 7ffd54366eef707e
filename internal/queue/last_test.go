package queue

import (
	"testing"
	"time"
)

// lastRuns are texts that look like a last run, and whether they are one.
var lastRuns = []struct {
	text string
	want *Last // nil: refused
}{
	{"", &Last{}},
	{"1 2 3 4 0", &Last{Rev: 1, Slot: time.UnixMilli(2).UTC(), Runs: 3, Anchor: time.UnixMilli(4).UTC()}},
	{"1 0 3 4 1", &Last{Rev: 1, Runs: 3, Anchor: time.UnixMilli(4).UTC(), Paused: true}},
	{"1 0 0 4 2", &Last{Rev: 1, Anchor: time.UnixMilli(4).UTC()}},
	{"9223372036854775807 0 -7 -4 0", &Last{Rev: 1<<63 - 1, Runs: -7}},
	{"1 0 0 4 0 6", &Last{Rev: 1, Anchor: time.UnixMilli(4).UTC()}}, // a newer release may add a number
	{"1 0 0 4 0 ", &Last{Rev: 1, Anchor: time.UnixMilli(4).UTC()}},
	{"1 0 0 4 0x", nil},
	{" 1 0 0 4 0", nil},
	{"1 0  0 4 0", nil},
	{"9223372036854775808 0 0 4 0", nil},
	{"1 2 3 4", nil},
	{"1 2 3 4 ", nil},
	{"1 2 3 4 x", nil},
	{"1_0 2 3 4 0", nil},
	{"1.0 2 3 4 0", nil},
	{"0x1 2 3 4 0", nil},
	{"1\n2 3 4 0", nil},
	{" ", nil},
	{"x", nil},
}

func TestParseLast_takesFiveNumbersAndWhatFollows(t *testing.T) {
	t.Parallel()
	for _, r := range lastRuns {
		got, err := ParseLast(r.text)
		switch {
		case r.want == nil && (err == nil || got != Last{}):
			t.Errorf("%q was read as %+v", r.text, got)
		case r.want != nil && (err != nil || got != *r.want):
			t.Errorf("%q: %+v, %v; want %+v", r.text, got, err, *r.want)
		}
	}
}
