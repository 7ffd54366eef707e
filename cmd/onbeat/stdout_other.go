//go:build !unix

package main

import (
	"os"
	"time"
)

// unread waits for a time. Only a write finds out here that a pipe is closed.
func unread(_ *os.File, wait time.Duration) bool {
	time.Sleep(wait)
	return false
}
