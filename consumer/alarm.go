package consumer

import (
	"time"

	"github.com/onbeat/onbeat/internal/precise"
)

// alarm goes off at a moment, more exactly than a timer of an idle program, which the Go runtime lets sleep in whole
// milliseconds: the last stretch is slept on a thread of its own.
type alarm struct {
	C     chan struct{}
	set   chan time.Time
	timer *time.Timer
	at    time.Time
}

// stretch is what is slept exactly: longer than a timer is late.
const stretch = 2 * time.Millisecond

func newAlarm() *alarm {
	a := &alarm{C: make(chan struct{}, 1), set: make(chan time.Time, 1), timer: time.NewTimer(time.Hour)}
	a.timer.Stop()
	go a.sleep()
	return a
}

// Set makes the alarm go off at a moment, in place of any set before. The zero time silences it. A ring that was
// already under way may still come: whoever hears it looks at the clock.
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

// Near is to be called when the timer fired: it has the last stretch slept.
func (a *alarm) Near() {
	select {
	case a.set <- a.at:
	default: // the sleeper is on an earlier stretch; its ring makes the loop look again
	}
}

// Rang is to be called when C was received.
func (a *alarm) Rang() { a.at = time.Time{} }

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
