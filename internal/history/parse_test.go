package history_test

import (
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/task"
)

func ms(n int64) time.Time { return time.UnixMilli(n).UTC() }

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line string
		want history.Note
	}{
		{"s@1700000000000 done 1 1700000000012", history.Note{Schedule: "s", Maker: "s", Slot: ms(1700000000000), Word: "done", Attempt: 1, Claimed: ms(1700000000012), TaskID: "s@1700000000000"}},
		{"a.b/c@5 failed 12 7", history.Note{Schedule: "a.b/c", Maker: "a.b/c", Slot: ms(5), Word: "failed", Attempt: 12, Claimed: ms(7), TaskID: "a.b/c@5"}},
		{"s!0001 lost 1 7", history.Note{Maker: "s", Word: "lost", Attempt: 1, Claimed: ms(7), TaskID: "s!0001"}},
		{"an id of words skipped overlap", history.Note{Word: "skipped", Why: "overlap", TaskID: "an id of words"}},
		{"s@5 missed outage", history.Note{Schedule: "s", Maker: "s", Slot: ms(5), Word: "missed", Why: "outage", TaskID: "s@5"}},
		{"s@5 returned", history.Note{Schedule: "s", Maker: "s", Slot: ms(5), Word: "returned", TaskID: "s@5"}},
		{"s@5..9 missed 5", history.Note{Schedule: "s", From: ms(5), To: ms(9), Word: "missed", Count: 5}},
		{"a..b@5..9 changed 5 every 1s to 2s", history.Note{Schedule: "a..b", From: ms(5), To: ms(9), Word: "changed", Count: 5, Why: "every 1s to 2s"}},
		{"s@5..9 missed five", history.Note{Maker: "s", Word: "missed", Why: "five", TaskID: "s@5..9"}},
		{"", history.Note{}},
		{"alone", history.Note{TaskID: "alone"}},
	}
	for _, tt := range tests {
		if got := history.Parse(tt.line); got != tt.want {
			t.Errorf("%q:\n got %+v\nwant %+v", tt.line, got, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"s@1 done 1 2", "s@1..2 missed 3 why", " ", "  ", "@", "s@..", "a b c d", "x 1 2", "s@-1..-2 w 9223372036854775808"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		n := history.Parse(line)
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

// An entry of the history: each line becomes a note, and none is lost.
func FuzzHistoryEntry(f *testing.F) {
	f.Add("1700000000000-0", "5", "a@1..2 missed 2\nb@3 done 1 4", "c done 1 2", "12 why")
	f.Add("x", "", "\n\n \n", "", "-9\n9223372036854775807 x")
	f.Fuzz(func(t *testing.T, id, gen, slots, runs, more string) {
		e := history.ParseEntry(id, map[string]any{"gen": gen, "slots": slots, "runs": runs, "more": more})
		want := 0
		for line := range strings.SplitSeq(slots+"\n"+runs, "\n") {
			if line != "" {
				want++
			}
		}
		if len(e.Notes) != want {
			t.Fatalf("%d notes of %q and %q, want %d", len(e.Notes), slots, runs, want)
		}
	})
}
