package producer

import (
	"time"

	"github.com/onbeat/onbeat/task"
)

// A slot has this many attempts, if its schedule does not say: enough to survive a crash or two, however soon the next slot comes, and
// no more than a person reads, however short a delay that does not grow.
const (
	leastAttempts = 3
	mostAttempts  = 100
	retriesLast   = time.Hour
)

// spaceAttempts sets the attempts of a slot's task, and its first delay, if its schedule does not: so that the longest delays add up to
// half of the gap to the next slot, an hour at most. So a fault of a minute ends no nightly job, and the retries of a job of each second
// do not pile up.
func spaceAttempts(t *task.Task, gap time.Duration) {
	within := min(gap/2, retriesLast)
	if base, _ := (task.Backoff{}).Bounds(); t.Backoff == (task.Backoff{}) && within < base*(1<<(leastAttempts-1)-1) {
		t.Backoff.Base = max((within / (1<<(leastAttempts-1) - 1)).Truncate(time.Millisecond), time.Millisecond)
	}
	if t.MaxAttempts > 0 {
		return
	}
	var sum time.Duration
	for t.MaxAttempts = 1; t.MaxAttempts < mostAttempts; t.MaxAttempts++ {
		if sum += t.Backoff.Ceiling(t.MaxAttempts); sum > within && t.MaxAttempts >= leastAttempts {
			return
		}
	}
}
