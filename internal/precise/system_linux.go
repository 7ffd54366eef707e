package precise

import (
	"syscall"
	"time"
)

// system blocks its thread in the kernel, whose timers are exact to some tens of microseconds. By default the kernel lets a
// thread oversleep by 50 more, to wake several at once; system turns that off for this thread.
func system(d time.Duration) {
	const setTimerSlack, leastNs = 29, 1 // PR_SET_TIMERSLACK of prctl(2)
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, leastNs, 0)
	spec := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&spec, nil) // a signal may cut it short: the caller checks the clock
}
