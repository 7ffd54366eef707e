//go:build !linux

package consumer

import "time"

// preciseSleep sleeps as exactly as the Go runtime can here.
func preciseSleep(d time.Duration) { time.Sleep(d) }
