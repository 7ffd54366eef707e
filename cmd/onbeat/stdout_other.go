//go:build !unix

package main

import (
	"os"
	"time"
)

// unread waits for a time. On this system only a write can find out that a pipe is closed.
func unread(_ *os.File, wait time.Duration) bool {
	time.Sleep(wait)
	return false
}
