package producer

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// A schedule as it lies in Redis, where anybody may have written it: it is refused, or it has a next slot soon.
func FuzzEntry(f *testing.F) {
	const last = "1700000000001 1700000000000 5 1690000000000 0"
	for _, s := range []string{
		`{"v":1,"origin":"declared","release":"v1","name":"a","task":"echo","every":"1s","payload":{"a":1}}`,
		`{"v":1,"origin":"applied","name":"a","task":"http","cron":"*/5 * * * *","timezone":"Asia/Seoul","max_runs":3,"priority":"high"}`,
		`{"v":2,"name":"a"}`, `{"every":"1ms","jitter":"1h"}`, `{}`, `[]`, ``, `null`, `{"timeout":"-1s"}`,
	} {
		f.Add(s, last, "1690000000000 {} 1690000000000 1690000005000")
	}
	f.Add(`{"v":1,"task":"echo","every":"1ms"}`, "1 -9223372036854775808 9223372036854775807 9223372036854775807 0", "1 x 5 2")
	f.Fuzz(func(t *testing.T, definition, last, behind string) {
		began := time.Now()
		e, err := newEntry(queue.Stored{Name: "a", Definition: definition, Last: last, Behind: behind})
		if err != nil || e == nil {
			return
		}
		if e.s.Name != "a" {
			t.Fatalf("%q calls itself %q", definition, e.s.Name)
		}
		if !e.next.IsZero() && !e.last.Slot.IsZero() && !e.next.After(e.last.Slot) {
			t.Fatalf("%q at %q: the next slot is %v", definition, last, e.next)
		}
		_, _ = e.s.Validate(task.Limits{}), e.upTo(time.UnixMilli(1_800_000_000_000))
		d := definitionOf(e)
		text, err := d.encode()
		if err != nil {
			return
		}
		if again, err := decodeDefinition("a", text); err != nil || !same(&again.Schedule, &d.Schedule) {
			t.Fatalf("%q was written as %q, and reads %+v, %v", definition, text, again, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("%q with %q and %q took %v", definition, last, behind, took)
		}
	})
}

func definitionOf(e *entry) *definition { return &definition{definitionHead: *e.head, Schedule: *e.s} }
