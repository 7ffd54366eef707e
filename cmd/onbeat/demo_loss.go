package main

import (
	"fmt"
	"syscall"
	"time"

	"github.com/onbeat/onbeat/internal/trial"
)

// demoLoss is one time that the leader was killed or frozen.
type demoLoss struct {
	sig syscall.Signal
	at  time.Time
}

// paused returns by how much the beat that was due next was late.
func (l demoLoss) paused(list []trial.Arrival) (late time.Duration) {
	next := time.Time{}
	for _, a := range list {
		if a.Slot.After(l.at) && (next.IsZero() || a.Slot.Before(next)) {
			next, late = a.Slot, a.At.Sub(a.Slot)
		}
	}
	return late
}

// onTime is the longest delay that nobody notices.
const onTime = 20 * time.Millisecond

// words says how long the beat paused.
func (l demoLoss) words(list []trial.Arrival) string {
	switch late := l.paused(list); {
	case late <= onTime:
		return "The beat did not pause."
	case late < time.Second:
		return fmt.Sprintf("The beat paused for %d ms.", late.Milliseconds())
	default:
		return fmt.Sprintf("The beat paused for %.1f s.", late.Seconds())
	}
}

// lost adds how long the beat paused at each kind of loss.
func (v *demoVerdict) lost(losses []demoLoss, list []trial.Arrival) {
	for _, l := range losses {
		switch late := trial.Millis(l.paused(list)); l.sig {
		case trial.SigKill:
			v.AfterKill = max(v.AfterKill, late)
		case trial.SigStop:
			v.AfterStop = max(v.AfterStop, late)
		}
	}
}
