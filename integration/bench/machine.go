package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/precise"
)

// reference measures the delay of the machine itself while a peer's delays are measured: a process beside the peer sleeps until a
// time, again and again, and then sends one PING. No program that waits for a time and then asks Redis begins earlier than that
// answer comes.
type reference struct {
	in  io.Closer
	out io.Reader
	cmd *exec.Cmd
	err error
}

// watching is the job of that process.
const watching = "watch"

// startReference begins to watch. Without an address only the sleep is measured.
func startReference(ctx context.Context, address string) *reference {
	r := &reference{cmd: self(ctx, &job{Scenario: watching, Redis: address})}
	var err1, err2 error
	r.in, err1 = r.cmd.StdinPipe()
	r.out, err2 = r.cmd.StdoutPipe()
	r.err = errors.Join(err1, err2, r.cmd.Start())
	return r
}

// stop adds the delays to the figures.
func (r *reference) stop(m metrics) error {
	if r.err != nil {
		return r.err
	}
	found := metrics{}
	err := errors.Join(r.in.Close(), json.NewDecoder(r.out).Decode(&found), r.cmd.Wait())
	maps.Copy(m, found)
	return err
}

// watch takes samples until standard input ends, and prints their delays. A sample is taken halfway between two slots, also of the
// quickest beat, so that it is in nobody's way.
func watch(address string) error {
	const every, at = 100 * time.Millisecond, 50 * time.Millisecond
	var ended atomic.Bool
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		ended.Store(true)
	}()
	rdb := redis.NewClient(&redis.Options{Addr: address})
	var slept, answered []time.Duration
	for !ended.Load() {
		next := time.Now().Truncate(every).Add(every + at)
		for rest := time.Until(next); rest > 0; rest = time.Until(next) {
			precise.Sleep(rest)
		}
		slept = append(slept, time.Since(next))
		if address != "" && rdb.Ping(context.Background()).Err() == nil {
			answered = append(answered, time.Since(next))
		}
	}
	m := metrics{"pings": float64(len(answered))}
	delays(m, "sleep", slept)
	delays(m, "ping", answered)
	return json.NewEncoder(os.Stdout).Encode(m)
}

// machine describes the machine of the bench, and names the versions.
func machine(ctx context.Context) string {
	text := fmt.Sprintf("%s, %d cores, %s/%s, %s", field("/proc/cpuinfo", "model name"), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	for _, program := range []string{"redis-server", "postgres", "node"} {
		if out, err := exec.CommandContext(ctx, program, "--version").Output(); err == nil {
			text += "; " + program + ": " + strings.TrimSpace(string(out))
		}
	}
	if version := bullMQVersion(); version != "" {
		text += "; bullmq " + version
	}
	info, _ := debug.ReadBuildInfo()
	for _, d := range info.Deps {
		switch d.Path {
		case "github.com/hibiken/asynq", faktoryModule, "github.com/contribsys/faktory_worker_go", "github.com/riverqueue/river", "github.com/redis/go-redis/v9", "github.com/jackc/pgx/v5":
			text += fmt.Sprintf("; %s %s", d.Path, d.Version)
		}
	}
	return text + "; " + time.Now().UTC().Format(time.DateOnly)
}

// field finds a line "name: value" in a file of /proc.
func field(path, name string) string {
	b, _ := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
