package task_test

import (
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/task"
)

// The ID of a slot names one slot of one schedule.
func FuzzSlotID(f *testing.F) {
	for _, s := range []string{"a@1", "a@-1", "a@b@1700000000000", "@1", "a@", "a@01", "a@+1", "a@9223372036854775807", "a@9223372036854775808", "a b@1", "\u202e@1", "a@1 "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		schedule, slot, ok := task.ParseSlotID(id)
		if !ok {
			return
		}
		if again := task.SlotID(schedule, slot); again != id {
			t.Fatalf("%q is slot %v of %q, whose ID is %q", id, slot, schedule, again)
		}
		if err := task.CheckName("schedule", schedule); err != nil {
			t.Fatalf("%q: %v", id, err)
		}
	})
}

// A word of a flag or of a record, or a name that a caller may choose, is refused in one line, or is as good as it looks.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"echo", "a:b/c.d-e_f+g", "", "a b", "é", "a\nb", "low", "normal", "high", "due", "running", strings.Repeat("x", 300), "\xff", "\u202e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		one := func(err error) {
			if err != nil && (strings.ContainsAny(err.Error(), "\r\n\x1b") || len(err.Error()) > 2000) {
				t.Fatalf("%q: not one short line: %q", s, err)
			}
		}
		err := task.CheckName("name", s)
		one(err)
		if err == nil && strings.ContainsAny(s, " |\x1f\n{}") {
			t.Fatalf("%q is a name, and cannot stand in a key", s)
		}
		if p, err := task.ParsePriority(s); err == nil && s != "" && p.String() != s {
			t.Fatalf("%q is priority %s", s, p)
		} else if err != nil {
			one(err)
		}
		_, err = task.ParseState(s)
		one(err)
		made := &task.Task{ID: s, Type: "t", Key: s, UniqueKey: s, UniqueFor: time.Second}
		one(made.Validate(task.Limits{}))
	})
}
