package testredis

import (
	"errors"
	"os"
)

func kill(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

var errNoPause = errors.New("Windows cannot pause a process; use a container")

func pause(int) error  { return errNoPause }
func resume(int) error { return errNoPause }
