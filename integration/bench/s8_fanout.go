package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// fanout is S8: several processes take from one due set. The first fills it. Each says "{}" when it is ready; all begin when
// they read a line, and say at the end what they handled.
var fanout = &scenario{
	name: "S8", title: "Fan-out",
	columns: []column{rate, serverCPU, calls, clientCPU},
	plan: func(quick bool, peer string) (list []params) {
		if peer == "river" {
			return nil
		}
		usual := candidates[peer][0]
		for _, n := range sizes(quick, []int{1, 2}, []int{1, 2, 4}) {
			list = append(list, params{Tasks: sizes(quick, 10_000, 100_000), Bytes: 64, Processes: n, Concurrency: usual.concurrency, Servers: usual.servers})
		}
		return list
	},
}

// share is what a process says at the end.
type share struct {
	cost
	Handled []byte `json:"handled"` // how often each task
}

// lead measures the processes.
func (c *child) lead(ctx context.Context) error {
	var outs []*json.Decoder
	var ins []io.Writer
	for i := range c.Params.Processes {
		j := c.job
		j.Part = i
		cmd := worker(ctx, &j)
		in, err1 := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		if err := errors.Join(err1, err2, cmd.Start()); err != nil {
			return err
		}
		defer func() { _ = cmd.Wait() }()
		ins, outs = append(ins, in), append(outs, json.NewDecoder(out))
	}
	for _, out := range outs {
		if err := out.Decode(&struct{}{}); err != nil {
			return err
		}
	}
	before := c.read(ctx)
	for _, in := range ins {
		if _, err := io.WriteString(in, "go\n"); err != nil {
			return err
		}
	}
	var whole cost
	times := make([]byte, c.Params.Tasks)
	for _, out := range outs {
		var s share
		if err := out.Decode(&s); err != nil {
			return err
		}
		whole.Seconds = max(whole.Seconds, s.Seconds)
		whole.CPU += s.CPU
		whole.Allocs += s.Allocs
		whole.Calls += s.Calls
		for i, n := range s.Handled {
			times[i] += n
		}
	}
	whole.used = c.read(ctx)
	whole.used.cpu -= before.cpu
	whole.used.commands -= before.commands
	c.perTask(&whole, len(times))
	c.metrics["tasks_per_s"] = float64(len(times)) / whole.Seconds
	return exactlyOnce(times)
}

// takePart is what each process does. It ends when no task is left, whoever handled it.
func (c *child) takePart(ctx context.Context) error {
	p, err := openPeer(ctx, c)
	if err != nil {
		return err
	}
	if c.Part == 0 {
		if err := fill(ctx, &c.job, p, numbered(c.Params.Tasks, c.Params.Bytes, nil)); err != nil {
			return err
		}
	}
	fmt.Println("{}")
	bufio.NewScanner(os.Stdin).Scan()
	o := c.options()
	o.share = true
	s := c.begin(ctx, p.Calls)
	t := newTally(c.Params.Tasks)
	var last atomic.Int64
	err = p.Dispatch(ctx, o, func(n int) {
		t.handle(n)
		last.Store(int64(time.Since(t.began)))
	})
	if err != nil {
		return err
	}
	if err := leaves(ctx, p, 0); err != nil {
		return err
	}
	x := s.end(ctx)
	x.Seconds = time.Duration(last.Load()).Seconds()
	return errors.Join(c.err, json.NewEncoder(os.Stdout).Encode(share{x, t.counts()}))
}
