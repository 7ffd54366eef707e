//go:build !unix

package main

import (
	"os"
	"syscall"
)

// forwarded is what there is to forward: an interrupt reaches the command by itself.
var forwarded = []os.Signal{os.Interrupt, syscall.SIGTERM}

// terminate is not polite here: there is no other way to end a process.
var terminate = os.Kill

func typed(s os.Signal) bool { return s == os.Interrupt }

func hasTerminal() bool { return true } // a console

func tell(p *os.Process, _ os.Signal, _ bool) bool { return p.Kill() == nil }

func exitOf(os.Signal) int { return exitFailed }

func exitCode(state *os.ProcessState) int { return state.ExitCode() }

func lockChildAttr(bool) *syscall.SysProcAttr { return nil }
