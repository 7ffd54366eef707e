//go:build !unix

package handlers

import (
	"os/exec"
	"time"
)

// inGroup does nothing: there are no process groups. Only the command itself is killed when the context ends.
func inGroup(*exec.Cmd) {}

func endGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func awaitGroup(*exec.Cmd, time.Time) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
