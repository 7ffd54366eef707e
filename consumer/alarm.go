package consumer

import (
	"time"

	"github.com/onbeat/onbeat/internal/precise"
)

// alarm rings at a moment, more exactly than a timer. In an idle program the Go runtime sleeps in whole milliseconds, so
// a timer rings late. The alarm sleeps the last stretch on a thread of its own.
type alarm struct {
	C     chan struct{}
	set   chan time.Time
	timer *time.Timer
	at    time.Time
}

// stretch is the time before the ring that is slept exactly. It is longer than a timer can be late.
const stretch = 2 * time.Millisecond

func newAlarm() *alarm {
	a := &alarm{C: make(chan struct{}, 1), set: make(chan time.Time, 1), timer: time.NewTimer(time.Hour)}
	a.timer.Stop()
	go a.sleep()
	return a
}

// Set makes the alarm ring at a moment, in place of the one set before. The zero time silences it. A ring that is already
// under way may still come, so the loop must treat a ring as a hint, and look for due tasks.
func (a *alarm) Set(at time.Time) {
	if at.Equal(a.at) {
		return
	}
	a.at = at
	a.timer.Stop()
	if !at.IsZero() {
		a.timer.Reset(time.Until(at) - stretch)
	}
}

// Near starts the last stretch. The loop calls it when the timer fires.
func (a *alarm) Near() {
	select {
	case a.set <- a.at:
	default: // the sleeper is busy with an earlier stretch; its ring makes the loop look again
	}
}

// Rang marks the alarm as not set. The loop calls it when it receives from C.
func (a *alarm) Rang() { a.at = time.Time{} }

// Stop ends the alarm for good and frees its goroutine.
func (a *alarm) Stop() {
	a.timer.Stop()
	close(a.set)
}

func (a *alarm) sleep() {
	for at := range a.set {
		precise.Sleep(time.Until(at))
		select {
		case a.C <- struct{}{}:
		default:
		}
	}
}
