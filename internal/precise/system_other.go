//go:build !linux

package precise

import "time"

// system sleeps as exactly as the Go runtime can here.
func system(d time.Duration) { time.Sleep(d) }
