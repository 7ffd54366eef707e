package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/contribsys/faktory/client"
	faktory "github.com/contribsys/faktory_worker_go"
	"github.com/redis/go-redis/v9"
)

// faktoryModule is Faktory's server and its client.
const faktoryModule = "github.com/contribsys/faktory"

// faktoryServer is a Faktory with its own settings, and the Redis that it starts for itself.
type faktoryServer struct {
	addr, dir string
	cmd       *exec.Cmd
	end       func() // asks it to end
	rdb       *redis.Client
}

// buildFaktory builds the server that go.mod names as a tool.
func buildFaktory(ctx context.Context, dir string) (program string, err error) {
	program = filepath.Join(dir, "faktory")
	_, err = command(ctx, ".", "go", "build", "-o", program, faktoryModule+"/cmd/faktory")
	return program, err
}

func startFaktory(ctx context.Context, program string) (*faktoryServer, error) {
	f := &faktoryServer{}
	err := f.start(ctx, program)
	if err != nil {
		f.stop()
	}
	return f, err
}

func (f *faktoryServer) start(ctx context.Context, program string) (err error) {
	if f.dir, err = os.MkdirTemp("", "onbeat-bench-faktory-"); err != nil {
		return err
	}
	var ports [2]string
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		ports[i] = l.Addr().String()
		_ = l.Close()
	}
	f.addr = ports[0]
	var said bytes.Buffer
	ctx, f.end = context.WithCancel(context.WithoutCancel(ctx))
	f.cmd = exec.CommandContext(ctx, program, "-b", f.addr, "-w", ports[1], "-d", f.dir, "-c", f.dir, "-l", "warn")
	f.cmd.Stdout, f.cmd.Stderr = &said, &said
	f.cmd.Cancel = func() error { return f.cmd.Process.Signal(syscall.SIGTERM) } // so that it ends its Redis
	f.cmd.WaitDelay = 10 * time.Second
	if err := f.cmd.Start(); err != nil {
		return err
	}
	f.rdb = redis.NewClient(&redis.Options{Network: "unix", Addr: filepath.Join(f.dir, "redis.sock"), PoolSize: 1})
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		c, err := f.dial()
		if err == nil {
			return c.Close()
		}
		if time.Since(began) > 20*time.Second {
			return fmt.Errorf("the server of Faktory does not answer: %w\n%s", err, said.String())
		}
	}
}

func (f *faktoryServer) dial() (*client.Client, error) {
	return client.Dial(faktoryAt(f.addr), "")
}

func faktoryAt(addr string) *client.Server {
	return &client.Server{Network: "tcp", Address: addr, Timeout: 5 * time.Second}
}

func (f *faktoryServer) stop() {
	if f.rdb != nil {
		_ = f.rdb.Close()
	}
	if f.end != nil {
		f.end()
		_ = f.cmd.Wait()
	}
	_ = os.RemoveAll(f.dir)
}

// read reads what Faktory and its Redis have used together. It counts the commands of Redis.
func (f *faktoryServer) read(ctx context.Context) (used, error) {
	u, err := readRedis(ctx, f.rdb)
	u.cpu = processorTimeOf(f.cmd.Process.Pid)
	return u, err
}

// faktoryPeer is github.com/contribsys/faktory_worker_go.
type faktoryPeer struct {
	addr  string
	pool  *client.Pool
	calls counter
}

func newFaktory(addr string) (f *faktoryPeer, err error) {
	f = &faktoryPeer{addr: addr}
	f.pool, err = f.connections(100)
	return f, err
}

func (f *faktoryPeer) connections(n int) (*client.Pool, error) {
	return client.NewPoolWithClientConstructor(n, func() (*client.Client, error) { return faktoryAt(f.addr).OpenWithDialer(f) })
}

// Dial makes it a client.Dialer whose commands are counted.
func (f *faktoryPeer) Dial(network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(context.Background(), network, addr)
	return countedConn{c, &f.calls}, err
}

// countedConn counts the commands that are written: each ends a line.
type countedConn struct {
	net.Conn
	calls *counter
}

func (c countedConn) Write(b []byte) (int, error) {
	if bytes.HasSuffix(b, []byte("\r\n")) {
		c.calls.n.Add(1)
	}
	return c.Conn.Write(b)
}

func faktoryJob(w work) *client.Job {
	x := client.NewJob("bench", string(w.payload()))
	if !w.due.IsZero() {
		x.At = w.due.UTC().Format(time.RFC3339Nano)
	}
	return x
}

func (f *faktoryPeer) Bulk(_ context.Context, tasks []work) error {
	jobs := make([]*client.Job, len(tasks))
	for i, w := range tasks {
		jobs[i] = faktoryJob(w)
	}
	return f.pool.With(func(c *client.Client) error {
		refused, err := c.PushBulk(jobs)
		if len(refused) > 0 {
			err = errors.Join(err, fmt.Errorf("%d jobs were refused", len(refused)))
		}
		return err
	})
}

func (f *faktoryPeer) One(_ context.Context, w work) error {
	return f.pool.With(func(c *client.Client) error { return c.Push(faktoryJob(w)) })
}

// Dispatch runs the managers of Faktory's documentation. Each of their workers waits up to two seconds before its first call.
func (f *faktoryPeer) Dispatch(ctx context.Context, o options, handle func(n int)) error {
	for range max(o.servers, 1) {
		m := faktory.NewManager()
		m.Concurrency, m.Logger = o.concurrency, &faktory.StdLogger{Logger: log.New(io.Discard, "", 0)}
		m.ProcessWID = strconv.Itoa(os.Getpid())
		var err error
		if m.Pool, err = f.connections(o.concurrency + 2); err != nil {
			return err
		}
		m.Register("bench", func(_ context.Context, args ...any) error {
			text, _ := args[0].(string)
			if !o.typed {
				handle(number(text))
				return nil
			}
			var p typedPayload
			if err := json.Unmarshal([]byte(text), &p); err != nil {
				return err
			}
			handle(p.number())
			return nil
		})
		go func() { _ = m.RunWithContext(ctx) }()
	}
	return nil
}

func (f *faktoryPeer) Left(context.Context) (left int64, err error) {
	err = f.pool.With(func(c *client.Client) error {
		state, err := c.CurrentState()
		if err != nil {
			return err
		}
		left = int64(state.Data.TotalEnqueued) //nolint:gosec // what the bench added
		for _, set := range []string{"scheduled", "working", "retries"} {
			left += int64(state.Data.Sets[set]) //nolint:gosec // likewise
		}
		return nil
	})
	return left, err
}

func (f *faktoryPeer) Calls() int64 { return f.calls.n.Load() }
