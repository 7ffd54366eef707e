package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/lock"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// The exit codes of lock run, beside the command's own: those of flock(1), which come from sysexits.h, and two more.
const (
	exitUsage   = 64  // EX_USAGE: the arguments are wrong
	exitCannot  = 69  // EX_UNAVAILABLE: the command cannot be started
	exitRefused = 71  // EX_OSERR: Redis refuses us
	exitNoRedis = 75  // EX_TEMPFAIL: Redis does not answer
	exitLost    = 79  // the lock was lost; the first number that sysexits.h leaves free
	exitAtMost  = 124 // the time of --at-most is over, as in timeout(1)
)

type lockRunCmd struct {
	Name    string   `arg:"" help:"Name of the lock."`
	Command []string `arg:"" passthrough:"" optional:"" predict:"file" help:"Command to run, and its arguments, after --. Its environment has ONBEAT_LOCK_NAME and ONBEAT_LOCK_FENCE, and not ONBEAT_REDIS_URL."`

	Nonblock         bool   `aliases:"nb" help:"Do not wait if another process has the lock."`
	Wait             string `short:"w" aliases:"timeout" placeholder:"SECONDS" help:"Wait at most this long: 1.5, or 1m. Default: for ever."`
	ConflictExitCode string `short:"E" placeholder:"N" help:"Exit code if another process still has the lock. Default 1."`

	TTL     string `name:"ttl" placeholder:"D" help:"How long the lock outlives this process if it dies. Default 30s."`
	AtLeast string `placeholder:"D" help:"Keep the lock at least this long, so that a short job runs once: longer than the clocks of your machines differ."`
	AtMost  string `placeholder:"D" help:"End the command after this long, with exit code 124."`
	Grace   string `placeholder:"D" help:"Time from SIGTERM to SIGKILL, when the lock is lost or --at-most is over. Default: a tenth of --ttl. With a longer time, another process may have the lock before the command ends."`
	Verbose bool   `help:"Print an error if another process has the lock."`
}

// Help is shown by onbeat lock run --help.
func (c *lockRunCmd) Help() string {
	return "Exits with the exit code of the command; with 1 (or -E) if another process has the lock, 64 if the arguments are wrong " +
		"(2 if the flags cannot be read), 69 if the command cannot be started, 71 if Redis refuses, 75 if Redis does not answer, " +
		"79 if the lock was lost, 124 if --at-most is over. It needs no namespace: all users of a Redis who name no namespace " +
		"share their lock names."
}

// heeded are the signals to forward, without those that our parent made us ignore, as nohup does, or a script that starts us in
// the background. It is computed before main asks for any signal.
var heeded = slices.DeleteFunc(slices.Clone(forwarded), signal.Ignored)

// Run takes the lock, runs the command, and ends with its exit code.
func (c *lockRunCmd) Run(ctx context.Context, a *app) error {
	// From here on a signal is for the command, and a second one does not end us before the command.
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	signals := make(chan os.Signal, 16)
	if len(heeded) > 0 { // Notify without signals would ask for all
		signal.Notify(signals, heeded...)
	}
	defer signal.Stop(signals)

	p, err := c.plan(a)
	if err != nil {
		return &exitStatus{exitUsage, err}
	}
	if _, err := exec.LookPath(c.Command[0]); err != nil { // take no lock, and so no --at-least: another machine may have the command
		return &exitStatus{exitCannot, err}
	}
	rdb, err := config.Dial(onbeat.Dialer{}, p.url)
	if err != nil {
		return &exitStatus{exitUsage, err}
	}
	defer func() { _ = rdb.Close() }()
	if _, err := lock.New(rdb, p.opts); err != nil {
		return &exitStatus{exitUsage, err}
	}
	_ = hideMemory() // on an error go on: the command runs as our own user, who trusts it with more than the password
	held, err := c.acquire(ctx, a, rdb, p, signals)
	if err != nil {
		return c.notHeld(whyHungUp(ctx, rdb, err), p)
	}
	return newLockChild(a, held, p, c.Command).run(signals)
}

// lockPlan holds the flags after they were read.
type lockPlan struct {
	url      string
	opts     lock.Options
	try      bool // do not wait
	conflict int
	grace    time.Duration
}

func (c *lockRunCmd) plan(a *app) (*lockPlan, error) {
	switch {
	case len(c.Command) > 0 && c.Command[0] == "--":
		c.Command = c.Command[1:]
	case len(c.Command) > 0 && strings.HasPrefix(c.Command[0], "-"):
		return nil, &usageError{"unknown flag " + c.Command[0], "flags come before or after NAME, and the command after --"}
	}
	if len(c.Command) == 0 {
		return nil, &usageError{"no command", "onbeat lock run NAME -- COMMAND [ARGUMENT...]"}
	}
	t, err := a.redisTarget()
	if err != nil && (t.url == "" || t.cfg.Namespace != "") { // a lock needs no namespace
		return nil, err
	}
	p := &lockPlan{url: t.url, try: c.Nonblock, conflict: 1, opts: lock.Options{Namespace: t.cfg.Namespace, TTL: 30 * time.Second}}
	if c.ConflictExitCode != "" {
		p.conflict, err = strconv.Atoi(c.ConflictExitCode)
		if err != nil || p.conflict < 0 || p.conflict > 255 {
			return nil, refuse("conflict-exit-code", c.ConflictExitCode, "not an exit code", "0 to 255")
		}
	}
	if c.Wait != "" {
		if p.opts.Wait, err = waitOf(c.Wait); err != nil {
			return nil, err
		}
		p.try = p.try || p.opts.Wait == 0
	}
	for _, f := range []struct {
		name, value string
		to          *time.Duration
	}{
		{"ttl", c.TTL, &p.opts.TTL}, {"at-least", c.AtLeast, &p.opts.AtLeastFor}, {"at-most", c.AtMost, &p.opts.AtMostFor},
		{"grace", c.Grace, &p.grace},
	} {
		if f.value == "" {
			continue
		}
		if *f.to, err = schedule.ParseDuration(f.value); err != nil || *f.to < 0 {
			return nil, refuse(f.name, f.value, "not a duration", "such as 30s or 5m")
		}
	}
	if p.opts.TTL == 0 { // package lock would take its default
		return nil, refuse("ttl", c.TTL, "out of range", "500ms to 1h; the default is 30s")
	}
	if c.Grace == "" {
		p.grace = p.opts.TTL / 10 // after it the next process can have the lock
	}
	return p, p.opts.Validate()
}

// waitOf reads seconds, as flock(1) does, or a duration.
func waitOf(s string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(s, 64); err == nil && n >= 0 && n < 1e9 {
		return time.Duration(n * float64(time.Second)), nil
	}
	d, err := schedule.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, refuse("wait", s, "not a time to wait", "seconds, such as 10 or 0.5, or 5m")
	}
	return d, nil
}

// acquire takes the lock. A signal ends the wait.
func (c *lockRunCmd) acquire(ctx context.Context, a *app, rdb redis.UniversalClient, p *lockPlan, signals <-chan os.Signal) (*lock.Lock, error) {
	type result struct {
		held *lock.Lock
		err  error
	}
	waited, stop := context.WithCancelCause(ctx)
	defer context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })()
	got := make(chan result, 1)
	go func() {
		held, err := c.take(waited, a, rdb, p)
		got <- result{held, err}
	}()
	select {
	case r := <-got:
		return r.held, r.err
	case s := <-signals:
		stop(&signalled{s})
		r := <-got
		if r.held != nil { // the signal came just as we got the lock
			_ = r.held.Release(ctx)
			r.err = &signalled{s}
		}
		return nil, r.err
	}
}

// betweenTries is the pause before another try if Redis does not answer.
const betweenTries = 500 * time.Millisecond

// take takes the lock. The time to wait covers Redis as well as the lock: a job that starts during a failover runs after it.
func (c *lockRunCmd) take(ctx context.Context, a *app, rdb redis.UniversalClient, p *lockPlan) (*lock.Lock, error) {
	began, opts := time.Now(), p.opts
	for told := false; ; {
		l, err := lock.New(rdb, opts)
		if err != nil {
			return nil, err
		}
		if p.try {
			return l.TryAcquire(ctx, c.Name)
		}
		held, err := l.Acquire(ctx, c.Name)
		if err == nil || errors.Is(err, lock.ErrHeld) || !store.Retryable(err) {
			return held, err
		}
		pause := betweenTries
		if p.opts.Wait > 0 {
			if opts.Wait = p.opts.Wait - time.Since(began) - pause; opts.Wait <= 0 {
				return nil, err
			}
		}
		if !told {
			told = true
			fmt.Fprintln(a.err, "onbeat: waiting for "+secret.URL(p.url)+":", said(whyHungUp(ctx, rdb, err)))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// signalled is the cause when a signal ends the wait.
type signalled struct{ os.Signal }

func (s *signalled) Error() string { return s.String() }

// notHeld returns the result of a command that did not get the lock.
func (c *lockRunCmd) notHeld(err error, p *lockPlan) error {
	var s *signalled
	switch {
	case errors.As(err, &s):
		return &exitStatus{exitOf(s.Signal), nil}
	case errors.Is(err, lock.ErrHeld):
		if !c.Verbose { // flock(1) prints nothing either: cron would send a mail
			err = nil
		}
		return &exitStatus{p.conflict, err}
	case askedWrongly(err):
		return &exitStatus{exitUsage, err}
	case admin.OfReplica(err):
		return &exitStatus{exitNoRedis, hintOfReplica(fmt.Errorf("%s: %w", secret.URL(p.url), err), p.url)}
	case errors.Is(err, task.ErrBusy):
		return &exitStatus{exitNoRedis, &failure{fmt.Errorf("%s: %w", secret.URL(p.url), err), admin.Hint(err)}}
	case store.Retryable(err):
		err = &failure{fmt.Errorf("%s: %w", secret.URL(p.url), err), "is it running? name another with --redis or ONBEAT_REDIS_URL"}
		return &exitStatus{exitNoRedis, err}
	}
	return &exitStatus{exitRefused, fmt.Errorf("%s: %w", secret.URL(p.url), err)}
}
