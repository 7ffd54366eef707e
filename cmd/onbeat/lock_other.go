//go:build !unix

package main

import (
	"os"
	"syscall"
)

// forwarded are the signals to forward. An interrupt reaches the command without us.
var forwarded = []os.Signal{os.Interrupt, syscall.SIGTERM}

// terminate kills the process: this system has no other way to end one.
var terminate = os.Kill

func typed(s os.Signal) bool { return s == os.Interrupt }

func hasTerminal() bool { return true } // a console

func tell(p *os.Process, _ os.Signal, _ bool) bool { return p.Kill() == nil }

func exitOf(os.Signal) int { return exitFailed }

func exitCode(state *os.ProcessState) int { return state.ExitCode() }

func lockChildAttr(bool) *syscall.SysProcAttr { return nil }
