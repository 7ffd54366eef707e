package consumer

import (
	"syscall"
	"time"
)

// preciseSleep blocks its thread in the kernel, whose timers are exact to some tens of microseconds.
func preciseSleep(d time.Duration) {
	if d <= 0 {
		return
	}
	spec := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&spec, nil) // cut short by a signal is as good: the caller looks at the clock
}
