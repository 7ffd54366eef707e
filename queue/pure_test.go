package queue_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

func TestParseNote(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line string
		want queue.Note
	}{
		{"s@1700000000000 done 1 1700000000012", queue.Note{Schedule: "s", Slot: ms(1700000000000), Word: "done", Attempt: 1, Claimed: ms(1700000000012), TaskID: "s@1700000000000"}},
		{"a.b/c@5 failed 12 7", queue.Note{Schedule: "a.b/c", Slot: ms(5), Word: "failed", Attempt: 12, Claimed: ms(7), TaskID: "a.b/c@5"}},
		{"s!0001 lost 1 7", queue.Note{Word: "lost", Attempt: 1, Claimed: ms(7), TaskID: "s!0001"}},
		{"an id of words skipped overlap", queue.Note{Word: "skipped", Why: "overlap", TaskID: "an id of words"}},
		{"s@5 missed outage", queue.Note{Schedule: "s", Slot: ms(5), Word: "missed", Why: "outage", TaskID: "s@5"}},
		{"s@5 returned", queue.Note{Schedule: "s", Slot: ms(5), Word: "returned", TaskID: "s@5"}},
		{"s@5..9 missed 5", queue.Note{Schedule: "s", From: ms(5), To: ms(9), Word: "missed", Count: 5}},
		{"a..b@5..9 changed 5 every 1s to 2s", queue.Note{Schedule: "a..b", From: ms(5), To: ms(9), Word: "changed", Count: 5, Why: "every 1s to 2s"}},
		{"s@5..9 missed five", queue.Note{Word: "missed", Why: "five", TaskID: "s@5..9"}},
		{"", queue.Note{}},
		{"alone", queue.Note{TaskID: "alone"}},
	}
	for _, tt := range tests {
		if got := queue.ParseNote(tt.line); got != tt.want {
			t.Errorf("%q:\n got %+v\nwant %+v", tt.line, got, tt.want)
		}
	}
}

func FuzzParseNote(f *testing.F) {
	for _, s := range []string{"s@1 done 1 2", "s@1..2 missed 3 why", " ", "  ", "@", "s@..", "a b c d", "x 1 2", "s@-1..-2 w 9223372036854775808"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		n := queue.ParseNote(line)
		if n.TaskID != "" && !strings.HasPrefix(line, n.TaskID) {
			t.Errorf("%q: task %q", line, n.TaskID)
		}
		if n.TaskID == "" && line != "" && n.Schedule == "" {
			t.Errorf("%q is about nothing", line)
		}
		if n.Schedule != "" && n.TaskID != "" && task.SlotID(n.Schedule, n.Slot) != n.TaskID {
			t.Errorf("%q: slot %v of %q", line, n.Slot, n.Schedule)
		}
	})
}

func TestParseLane(t *testing.T) {
	t.Parallel()
	for _, l := range []queue.Lane{lane("job"), {Queue: "q.a", Priority: task.High, Type: "a:b/c"}, {Queue: "q", Priority: task.Low, Type: "t"}} {
		got, err := queue.ParseLane(l.String())
		if err != nil || got != l {
			t.Errorf("%v: got %v, %v", l, got, err)
		}
	}
	for _, s := range []string{"", "q", "q|normal", "q|urgent|t"} {
		if l, err := queue.ParseLane(s); err == nil {
			t.Errorf("%q was read as %v", s, l)
		}
	}
}

func TestPartition_names(t *testing.T) {
	t.Parallel()
	same(t, "prefix", queue.Partition{Namespace: "shop"}.Prefix(), "onbeat:{shop}:")
	same(t, "prefix", queue.Partition{Namespace: "shop", Number: 3}.Prefix(), "onbeat:{shop#3}:")
	for _, ns := range []string{"", "a{b", "a b", "a*", strings.Repeat("x", 129)} {
		if _, err := queue.New(nil, queue.Partition{Namespace: ns}, queue.Caps{}); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("namespace %q: %v", ns, err)
		}
	}
}
