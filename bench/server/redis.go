// Package server starts the servers of a run, reads what they have used, and ends them.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis is a redis-server of its own, on 127.0.0.1 and a free port.
type Redis struct {
	Addr string
	cmd  *exec.Cmd
	dir  string
	rdb  *redis.Client
	gone chan struct{}
}

// StartRedis starts one that keeps everything in memory, or also writes an append-only file each second.
func StartRedis(ctx context.Context, appendOnly, tuned bool) (*Redis, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "onbeat-bench-redis-")
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	args := []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--daemonize", "no", "--loglevel", "warning"}
	if appendOnly {
		args = append(args, "--appendonly", "yes", "--appendfsync", "everysec")
	}
	if tuned { // timeouts of blocking commands, which BullMQ waits by, are then looked at more often
		args = append(args, "--hz", "500", "--dynamic-hz", "no")
	}
	r := &Redis{Addr: "127.0.0.1:" + strconv.Itoa(port), dir: dir, cmd: exec.Command(path, args...), gone: make(chan struct{})}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = r.cmd.Wait()
		close(r.gone)
	}()
	r.rdb = redis.NewClient(&redis.Options{Addr: r.Addr, PoolSize: 1, MaxRetries: -1})
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err = r.rdb.Ping(ctx).Err(); err == nil {
			return r, nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			r.Stop()
			return nil, fmt.Errorf("redis-server does not answer: %w", err)
		}
	}
}

// Stop ends the server and removes its files.
func (r *Redis) Stop() {
	_ = r.rdb.Close()
	end(r.cmd.Process, r.gone, syscall.SIGTERM)
	_ = os.RemoveAll(r.dir)
}

// end asks a process to end, and makes it after a while.
func end(p *os.Process, gone <-chan struct{}, sig os.Signal) {
	_ = p.Signal(sig)
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		_ = p.Kill()
		<-gone
	}
}

func freePort(ctx context.Context) (int, error) {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Used is what a server has used so far.
type Used struct {
	CPU      float64 // µs, user and system, all threads and children
	Commands float64 // with those inside scripts
	Bytes    float64 // of data
}

// Read reads what the server has used. Its memory is all that it allocated but for the buffers of connections and of the
// append-only file, and the scripts it keeps. (Its own "dataset" figure also leaves out the table of keys, which is a
// good part of what a peer with a key a task occupies.)
func (r *Redis) Read(ctx context.Context) (Used, error) {
	info, err := r.rdb.Info(ctx, "cpu", "stats", "memory").Result()
	if err != nil {
		return Used{}, err
	}
	v := parseInfo(info)
	if v["total_commands_processed"] == 0 {
		return Used{}, errors.New("INFO says nothing of commands")
	}
	cpu := v["used_cpu_user"] + v["used_cpu_sys"] + v["used_cpu_user_children"] + v["used_cpu_sys_children"]
	return Used{
		CPU: cpu * 1e6, Commands: v["total_commands_processed"],
		Bytes: v["used_memory"] - v["mem_clients_normal"] - v["mem_aof_buffer"] - v["used_memory_scripts_eval"],
	}, nil
}

// Ping sends the least command there is, and waits for the answer.
func (r *Redis) Ping(ctx context.Context) error { return r.rdb.Ping(ctx).Err() }

// Commands is how often each command was called, with those inside scripts, and how long all calls of it took in µs.
func (r *Redis) Commands(ctx context.Context) (string, error) {
	return r.rdb.Info(ctx, "commandstats").Result()
}

func parseInfo(info string) map[string]float64 {
	m := map[string]float64{}
	for line := range strings.Lines(info) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		if f, err := strconv.ParseFloat(value, 64); err == nil {
			m[name] = f
		}
	}
	return m
}

// RedisAllocator is the allocator that the redis-server was built with, and the distance of its smallest size classes: each value
// is rounded up to one, so a build of the distribution and one with the bundled jemalloc need different memory for the same data.
func RedisAllocator(ctx context.Context) string {
	r, err := StartRedis(ctx, false, false)
	if err != nil {
		return ""
	}
	defer r.Stop()
	info, _ := r.rdb.Info(ctx, "memory").Result()
	stats, _ := r.rdb.Do(ctx, "MEMORY", "MALLOC-STATS").Text()
	name := valueOf(info, "mem_allocator")
	if q := valueOf(stats, "Quantum size"); name != "" && q != "" {
		name += ", classes of " + q + " bytes"
	}
	return name
}

// valueOf finds a line "name: value".
func valueOf(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// RedisVersion is the version of the redis-server that is found.
func RedisVersion(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "redis-server", "--version").Output()
	if err != nil {
		return ""
	}
	for f := range strings.FieldsSeq(string(out)) {
		if v, ok := strings.CutPrefix(f, "v="); ok {
			return v
		}
	}
	return ""
}
