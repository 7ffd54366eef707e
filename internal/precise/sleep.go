package precise

import "time"

var sleep = system

// Sleep blocks the calling goroutine, and on Linux its thread, for d. It may return early: check the clock afterwards.
func Sleep(d time.Duration) {
	if d > 0 {
		sleep(d)
	}
}

// Use replaces what Sleep does for the rest of the process. It is for tests in virtual time, which a system call would
// block. Call it in TestMain, before anything sleeps.
func Use(fn func(time.Duration)) { sleep = fn }
