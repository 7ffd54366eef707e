package handlers

import (
	"context"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// outputTime is how long the output of a command is still read after the command has exited. A process that the command
// left behind may hold the output open for ever, and the exit status has decided.
const outputTime = time.Second

// command is a running program and its output.
//
// It does what [exec.Cmd.Wait] does, which has a single delay for two things: the grace of a command that is told to end,
// and the output of a command that has exited. The first may be minutes.
type command struct {
	*exec.Cmd
	stdout, stderr *tail
	pipes          []io.Closer // this process's ends
	copying        sync.WaitGroup
	read           chan struct{} // closed when both outputs have ended
	exited         chan error
}

// start starts cmd in a process group of its own.
func start(cmd *exec.Cmd, stdin string, output int) (*command, error) {
	c := &command{Cmd: cmd, stdout: &tail{limit: output}, stderr: &tail{limit: output}, read: make(chan struct{}), exited: make(chan error, 1)}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return c, err
	}
	c.pipes = append(c.pipes, out)
	errs, err := cmd.StderrPipe()
	if err != nil {
		c.close()
		return c, err
	}
	c.pipes = append(c.pipes, errs)
	var in io.WriteCloser
	if stdin != "" {
		if in, err = cmd.StdinPipe(); err != nil {
			c.close()
			return c, err
		}
		c.pipes = append(c.pipes, in)
	}
	inGroup(cmd)
	if err := cmd.Start(); err != nil {
		return c, err // Start has closed the pipes
	}
	c.copy(in, stdin, out, errs)
	go c.reap()
	return c, nil
}

func (c *command) copy(in io.WriteCloser, stdin string, out, errs io.Reader) {
	var outputs sync.WaitGroup
	for to, from := range map[*tail]io.Reader{c.stdout: out, c.stderr: errs} {
		outputs.Go(func() { _, _ = io.Copy(to, from) })
	}
	c.copying.Go(func() {
		outputs.Wait()
		close(c.read)
	})
	if in != nil {
		c.copying.Go(func() {
			_, _ = io.Copy(in, strings.NewReader(stdin)) // the command need not read it
			_ = in.Close()
		})
	}
}

func (c *command) reap() {
	state, err := c.Process.Wait()
	if err == nil && !state.Success() {
		err = &exec.ExitError{ProcessState: state}
	}
	c.exited <- err
}

// wait waits for the exit, and ends the whole group: at the exit, or when ctx ends and the grace is over.
func (c *command) wait(ctx context.Context, grace time.Duration) error {
	defer c.close()
	select {
	case err := <-c.exited:
		c.readOn()
		killGroup(c.Cmd)
		return err
	case <-ctx.Done():
	}
	endGroup(c.Cmd)
	over := time.Now().Add(grace)
	err, ended := c.exitBy(over)
	if ended {
		awaitGroup(c.Cmd, over)
	}
	killGroup(c.Cmd)
	if !ended {
		err = <-c.exited
	}
	c.readOn()
	if err == nil { // it exited because it was told to end
		err = ctx.Err()
	}
	return err
}

func (c *command) exitBy(t time.Time) (err error, ended bool) {
	select {
	case err := <-c.exited:
		return err, true
	case <-time.After(time.Until(t)):
		return nil, false
	}
}

// readOn reads output that was written before the exit and may still be in the pipes.
func (c *command) readOn() {
	select {
	case <-c.read:
	case <-time.After(outputTime):
	}
}

// close stops the copying; after that no goroutine writes to the tails.
func (c *command) close() {
	for _, p := range c.pipes {
		_ = p.Close()
	}
	c.copying.Wait()
}

// tail is a writer that keeps the end of what is written to it.
type tail struct {
	limit int
	buf   []byte
	cut   bool
}

var _ io.Writer = (*tail)(nil)

func (w *tail) Write(p []byte) (int, error) {
	n := len(p)
	if over := len(p) - w.limit; over > 0 {
		p, w.cut = p[over:], true
	}
	if over := len(w.buf) + len(p) - w.limit; over > 0 {
		w.buf, w.cut = append(w.buf[:0], w.buf[over:]...), true
	}
	w.buf = append(w.buf, p...)
	return n, nil
}

// keep makes what there is the output of the run of ctx.
func (w *tail) keep(ctx context.Context) {
	if o := outputOf(ctx); o != nil {
		o.put(string(w.buf), true)
	}
}

func (w *tail) String() string {
	if w.cut {
		return "…" + string(w.buf)
	}
	return string(w.buf)
}
