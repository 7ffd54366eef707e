package audit

import (
	"fmt"
	"time"

	"github.com/onbeat/onbeat/task"
)

// Sum is what became of the slots of a schedule in one step of a span.
type Sum struct {
	At     time.Time         // the step begins here; steps begin at multiples of their length since 1970
	Counts map[Verdict]int64 // those of no slot are left out
	// Ran says that an instance took one of them. Then Lag is the longest time from when one was due until it was first taken.
	Ran     bool
	Lag     time.Duration
	Retried int64 // slots that took more than one run
}

// checkStep refuses a step that is too short for the span.
func (o *Span) checkStep() error {
	if o.Step == 0 || o.Step >= time.Millisecond && o.To.Sub(o.From)/o.Step <= MostSteps {
		return nil
	}
	return &task.FieldError{
		Field: "step", Value: o.Step.String(), Reason: fmt.Sprintf("the span has more than %d of it", MostSteps),
		Hint: "ask for a longer step, or for a shorter time",
	}
}

// sums reports whether the slots of a schedule are summed up: there is less than a step between them, on average.
func (o *Span) sums(l *ledger) bool {
	n := int64(len(l.slots))
	return o.Step > 0 && n > 1 && l.slots[n-1].ms-l.slots[0].ms < (n-1)*o.Step.Milliseconds()
}

// sums returns the slots as they are judged by now, summed up. Steps without slots are left out.
func (l *ledger) sums(step time.Duration) (out []Sum) {
	for i := range l.slots {
		s := &l.slots[i]
		ms := s.ms - s.ms%step.Milliseconds()
		if n := len(out); n == 0 || out[n-1].At.UnixMilli() != ms {
			out = append(out, Sum{At: time.UnixMilli(ms).UTC(), Counts: map[Verdict]int64{}})
		}
		out[len(out)-1].add(s, l.verdict(s))
	}
	return out
}

func (x *Sum) add(s *slot, v Verdict) {
	x.Counts[v]++
	if s.flags&retried != 0 {
		x.Retried++
	}
	if s.flags&ran != 0 {
		if lag := time.Duration(s.lag) * time.Millisecond; !x.Ran || lag > x.Lag {
			x.Lag = lag
		}
		x.Ran = true
	}
}
