package containers

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/embedded"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestMain(m *testing.M) { Main(m) }

// started starts a server of the engine that belongs to the process owner, on a free port.
func started(ctx context.Context, t *testing.T, e *engine, owner int, args ...string) testredis.Process {
	t.Helper()
	port, err := embedded.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.run(ctx, port, args, owner)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func engineOrSkip(t *testing.T) *engine {
	t.Helper()
	e := only()
	if e == nil {
		t.Skip("no Docker engine with the image")
	}
	return e
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A test binary that is killed leaves its container; the next one removes it.
func TestSweep_removesContainersOfDeadTests(t *testing.T) {
	t.Parallel()
	e, ctx := engineOrSkip(t), within(t)
	// It lives until its container runs: other test binaries that start now sweep too.
	owner := exec.Command("sleep", "60")
	if err := owner.Start(); err != nil {
		t.Skip(err)
	}
	defer owner.Process.Kill()
	p := started(ctx, t, e, owner.Process.Pid)
	mine := started(ctx, t, e, os.Getpid())
	defer mine.Remove(context.Background())
	_ = owner.Process.Kill()
	_ = owner.Wait()
	e.sweep()
	// The removal by another may still be under way when ours returns, because the engine refuses a second one.
	err := poll(ctx, func() (bool, error) {
		_, err := p.(*box).running(ctx)
		return err != nil && ctx.Err() == nil, nil
	})
	if err != nil {
		t.Error("the container of a dead test still exists")
		_ = p.Remove(context.Background())
	}
	if up, err := mine.(*box).running(ctx); !up || err != nil {
		t.Errorf("our own container: running %v, %v; want it left alone", up, err)
	}
}

// A server in a container can be ended, frozen and started again, as testredis promises of every server.
func TestBox_keepsPortAndFileOverEveryFault(t *testing.T) {
	t.Parallel()
	e, ctx := engineOrSkip(t), within(t)
	p := started(ctx, t, e, os.Getpid(), "--appendonly", "yes")
	defer p.Remove(context.Background())
	addr := p.Addr()
	ask := func(timeout time.Duration) *redis.Client {
		rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: timeout})
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}
	if err := ask(time.Minute).Set(ctx, "k", "kept", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(context.Context) error{"stop": p.Stop, "kill": p.Kill} {
		if err := end(ctx); err != nil {
			t.Fatal(name, err)
		}
		if err := ask(time.Minute).Ping(ctx).Err(); err == nil {
			t.Error("it answers after", name)
		}
		if err := p.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		if got, err := ask(time.Minute).Get(ctx, "k").Result(); got != "kept" || err != nil || p.Addr() != addr {
			t.Errorf("after %s and restart at %s: %q, %v; want kept at %s", name, p.Addr(), got, err, addr)
		}
	}
	if err := p.Pause(ctx); err != nil {
		t.Fatal(err)
	}
	if err := ask(200 * time.Millisecond).Ping(ctx).Err(); err == nil {
		t.Error("a paused server answered")
	}
	if err := p.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	if err := ask(time.Minute).Ping(ctx).Err(); err != nil {
		t.Error("after resume:", err)
	}
}
