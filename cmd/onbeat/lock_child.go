package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/lock"
)

// lockChild is a command that runs under a lock.
type lockChild struct {
	a      *app
	held   *lock.Lock
	grace  time.Duration
	cmd    *exec.Cmd
	shares bool // it is in our process group because it shares our terminal, wherever our stdin comes from
	exited chan struct{}
	late   bool // a signal came after the command had ended
}

func newLockChild(a *app, held *lock.Lock, p *lockPlan, command []string) *lockChild {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.in, unfiltered(a.out), unfiltered(a.err)
	cmd.Env = append(withoutSecrets(os.Environ()), "ONBEAT_LOCK_NAME="+held.Name(), "ONBEAT_LOCK_FENCE="+strconv.FormatInt(held.Fence(), 10))
	shares := hasTerminal()
	cmd.SysProcAttr = lockChildAttr(!shares)
	return &lockChild{a: a, held: held, grace: p.grace, cmd: cmd, shares: shares, exited: make(chan struct{})}
}

// withoutSecrets returns an environment without the URLs of Redis and of the archive, which have passwords in them.
func withoutSecrets(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.EqualFold(name, "ONBEAT_REDIS_URL") || strings.EqualFold(name, "ONBEAT_ARCHIVE") // on Windows the case makes no difference
	})
}

// run runs the command to its end, releases the lock, and returns the result of both.
func (c *lockChild) run(signals <-chan os.Signal) error {
	if err := c.start(); err != nil {
		return &exitStatus{exitCannot, errors.Join(err, c.release(signals))}
	}
	over := c.held.Context().Done()
	var kill <-chan time.Time
	for {
		select {
		case <-c.exited:
			return c.end(signals)
		case s := <-signals:
			// The terminal itself sends a typed signal to the whole process group.
			if !c.shares || !typed(s) {
				c.late = !c.tell(s) || c.late
			}
		case <-over:
			over = nil
			c.tell(terminate)
			kill = time.After(c.grace)
		case <-kill:
			c.tell(os.Kill)
		}
	}
}

func (c *lockChild) start() error {
	started := make(chan error)
	go func() {
		// Linux ends the child when the thread that started it ends, so keep this thread as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			_ = c.cmd.Wait()
			close(c.exited)
		}
	}()
	return <-started
}

func (c *lockChild) tell(s os.Signal) (there bool) { return tell(c.cmd.Process, s, !c.shares) }

// end releases the lock after the command has ended, and returns the result.
func (c *lockChild) end(signals <-chan os.Signal) error {
	why := context.Cause(c.held.Context()) // nil: the command ended by itself
	released := c.release(signals)
	switch {
	case errors.Is(why, lock.ErrAtMost):
		return &exitStatus{exitAtMost, fmt.Errorf("lock %q: %w: onbeat ended the command", c.held.Name(), why)}
	case errors.Is(why, lock.ErrLost):
		return &exitStatus{exitLost, fmt.Errorf("lock %q: %w: onbeat ended the command", c.held.Name(), why)}
	case errors.Is(released, lock.ErrLost):
		return &exitStatus{exitLost, fmt.Errorf("%w while the command ran", released)}
	}
	return &exitStatus{exitCode(c.cmd.ProcessState), released}
}

// release gives the lock back. If Redis does not answer, a signal ends the wait: the command that it would be forwarded to has
// ended.
func (c *lockChild) release(signals <-chan os.Signal) error {
	released := make(chan error, 1)
	go func() { released <- c.held.Release(context.Background()) }()
	if !c.late {
		select {
		case err := <-released:
			return err
		case <-signals:
		}
	}
	select { // the signal may have been meant for the command, which ended just now
	case err := <-released:
		return err
	case <-time.After(time.Second):
		return fmt.Errorf("release lock %q: a signal ended the wait for Redis: the lock is free when its lease runs out", c.held.Name())
	}
}
