//go:build unix

package main

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// unread waits for a time, and reports whether the pipe's reader has closed it meanwhile.
func unread(file *os.File, wait time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(file.Fd())}} // poll reports errors and hangups without being asked for them
	n, err := unix.Poll(fds, int(wait.Milliseconds()))
	if err != nil {
		if !errors.Is(err, unix.EINTR) {
			time.Sleep(wait)
		}
		return false
	}
	return n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
