//go:build !unix

package handlers

import (
	"os/exec"
	"time"
)

// inGroup does nothing: there are no process groups, and the command alone is killed when the context ends.
func inGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd, bool, time.Duration) {}
