package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/onbeat/onbeat/bench/scenario"
	"github.com/onbeat/onbeat/bench/server"
	"github.com/onbeat/onbeat/bench/wire"
)

// reader is a server whose counters can be read.
type reader interface {
	Read(ctx context.Context) (server.Used, error)
}

// family is the processes of one run, usually one. Its parent reads the server's counters when all of them begin a
// stretch, and again when all have ended it.
type family struct {
	ctx     context.Context
	srv     reader
	job     wire.Job
	metrics wire.Metrics

	members []*member
	events  chan told
	before  server.Used
	load    load
	machine *reference // of the stretch, if it is one of delays
	waiting int
	ends    []wire.Event
	done    int
}

type member struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	handled int
}

type told struct {
	from  int
	event wire.Event
	err   error
}

// silence is how long the processes may say nothing at all. Filling a set with millions is the longest they do.
const silence = 10 * time.Minute

func (f *family) run(start func() (*exec.Cmd, error)) error {
	n := max(f.job.Params.Processes, 1)
	f.events = make(chan told, 64)
	defer f.end()
	defer func() { f.machine.stop() }()
	for part := range n {
		cmd, err := start()
		if err != nil {
			return err
		}
		job := f.job
		job.Part, job.Parts = part, n
		if err := f.add(cmd, job, part); err != nil {
			return err
		}
	}
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	for f.done < n {
		select {
		case t := <-f.events:
			quiet.Reset(silence)
			if t.err != nil {
				return t.err
			}
			if err := f.hear(t.from, t.event); err != nil {
				return err
			}
		case <-quiet.C:
			return fmt.Errorf("nothing was heard in %s", silence)
		case <-f.ctx.Done():
			return context.Cause(f.ctx)
		}
	}
	return nil
}

func (f *family) add(cmd *exec.Cmd, job wire.Job, part int) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	f.members = append(f.members, &member{cmd: cmd, in: in})
	go func() {
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadBytes('\n')
			var e wire.Event
			if err == nil {
				err = json.Unmarshal(line, &e)
			}
			if errors.Is(err, io.EOF) {
				err = errors.New("the process ended before it was done")
			}
			select {
			case f.events <- told{part, e, err}:
			case <-f.ctx.Done():
				return
			}
			if err != nil || e.Do == "done" || e.Do == "error" {
				return
			}
		}
	}()
	return json.NewEncoder(in).Encode(job)
}

// end ends the processes: without their standard input they end themselves.
func (f *family) end() {
	for _, m := range f.members {
		m.in.Close()
		timer := time.AfterFunc(10*time.Second, func() { _ = m.cmd.Process.Kill() })
		_ = m.cmd.Wait()
		timer.Stop()
	}
}

func (f *family) answer(text string) error {
	for _, m := range f.members {
		if _, err := io.WriteString(m.in, text+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// hear takes in what one process said.
func (f *family) hear(from int, e wire.Event) error {
	switch e.Do {
	case "begin":
		if f.waiting++; f.waiting < len(f.members) {
			return nil
		}
		f.waiting, f.ends = 0, nil
		var err error
		if f.before, err = f.srv.Read(f.ctx); err != nil {
			return err
		}
		f.load = readLoad()
		if f.job.Scenario == "S3" || f.job.Scenario == "S4" {
			f.machine = watch(f.ctx, f.srv)
		}
		return f.answer(wire.Go)
	case "handled":
		f.members[from].handled = e.N
		sum := 0
		for _, m := range f.members {
			sum += m.handled
		}
		if sum >= f.job.Params.Tasks {
			return f.answer(wire.Stop)
		}
	case "end":
		if f.ends = append(f.ends, e); len(f.ends) < len(f.members) {
			return nil
		}
		f.machine.stop()
		after, err := f.srv.Read(f.ctx)
		if err != nil {
			return err
		}
		if err := f.account(after); err != nil {
			return err
		}
		return f.answer(wire.Go)
	case "metrics":
		for name, v := range e.Metrics {
			f.metrics[name] = v
		}
	case "error":
		return errors.New(e.Text)
	case "done":
		f.done++
	}
	return nil
}

// account turns the ends of a stretch into metrics.
func (f *family) account(after server.Used) error {
	whole, err := f.join()
	if err != nil {
		return err
	}
	prefix := ""
	if whole.Name != "" {
		prefix = whole.Name + "_"
	}
	set := func(name string, v float64) { f.metrics[prefix+name] = v }
	after.Commands -= f.machine.result(f.metrics)
	for name, v := range whole.Metrics {
		set(name, v)
	}
	name := "redis"
	if f.job.Params.Store == "postgres" {
		name = "postgres"
	}
	cpu, commands, size := after.CPU-f.before.CPU, after.Commands-f.before.Commands, after.Bytes-f.before.Bytes
	c := whole.Client
	if busy, ok := f.load.others(cpu + c.CPU); ok {
		set("others_cores", busy)
	}
	set("seconds", whole.Seconds)
	set("rss_mb", c.RSS)
	if whole.Instances > 0 {
		each := whole.Seconds * float64(whole.Instances)
		set("commands_per_s_per_instance", commands/each)
		set(name+"_cpu_ms_per_s", cpu/1e3/whole.Seconds)
		set("client_cpu_ms_per_s", c.CPU/1e3/whole.Seconds)
		if name == "redis" {
			set("calls_per_s_per_instance", c.Calls/each)
		}
		return nil
	}
	n := float64(max(whole.Tasks, 1))
	set(name+"_cpu_us_per_task", cpu/n)
	set("commands_per_task", commands/n)
	set("client_cpu_us_per_task", c.CPU/n)
	if f.job.Scenario == "S1" || whole.Name == "load" { // elsewhere tasks leave
		set("bytes_per_task", size/n)
	}
	if c.Allocs >= 0 {
		set("allocs_per_task", c.Allocs/n)
		set("alloc_bytes_per_task", c.Bytes/n)
	}
	if name == "redis" {
		set("calls_per_task", c.Calls/n)
	}
	return nil
}

// join adds up what the processes said at the end of a stretch.
func (f *family) join() (wire.Event, error) {
	whole := f.ends[0]
	if len(f.ends) > 1 || whole.Handled != nil {
		whole.Client, whole.Metrics, whole.Tasks = &wire.Client{}, wire.Metrics{}, 0
		times := make([]byte, f.job.Params.Tasks)
		for _, e := range f.ends {
			whole.Seconds = max(whole.Seconds, e.Seconds)
			whole.Tasks += e.Tasks
			for name, v := range e.Metrics {
				whole.Metrics[name] += v
			}
			whole.Client.CPU += e.Client.CPU
			whole.Client.Allocs += e.Client.Allocs
			whole.Client.Bytes += e.Client.Bytes
			whole.Client.Calls += e.Client.Calls
			whole.Client.RSS = max(whole.Client.RSS, e.Client.RSS)
			for i, n := range e.Handled {
				times[i] = byte(min(int(times[i])+int(n), 255))
			}
		}
		if err := scenario.Once(times); err != nil {
			return whole, err
		}
		whole.Metrics["tasks_per_s"] = float64(whole.Tasks) / whole.Seconds
	}
	return whole, nil
}
