package testredis

import (
	"context"
	"os/exec"
	"testing"
)

// A test binary that is killed leaves its container; the next one removes it.
func TestSweep_removesContainersOfDeadTests(t *testing.T) {
	e := docker.get()
	if e == nil {
		t.Skip("no Docker engine with the image")
	}
	// It lives until its container runs: other test binaries that start now
	// sweep too.
	owner := exec.Command("sleep", "60")
	if err := owner.Start(); err != nil {
		t.Skip(err)
	}
	defer owner.Process.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	p, err := startOn(ctx, ownedBy{e, owner.Process.Pid}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := startOn(ctx, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.remove(context.Background())
	_ = owner.Process.Kill()
	_ = owner.Wait()
	e.sweep()
	// The removal by another may still be under way when ours returns, because
	// the engine refuses a second one.
	err = poll(ctx, func() (bool, error) {
		_, err := p.(*box).running(ctx)
		return err != nil && ctx.Err() == nil, nil
	})
	if err != nil {
		t.Error("the container of a dead test still exists")
		_ = p.remove(context.Background())
	}
	if up, err := mine.(*box).running(ctx); !up || err != nil {
		t.Errorf("our own container: running %v, %v; want it left alone", up, err)
	}
}

// ownedBy starts containers in the name of another process.
type ownedBy struct {
	*engine
	pid int
}

func (o ownedBy) start(ctx context.Context, port int, args []string) (process, error) {
	return o.run(ctx, port, args, o.pid)
}
