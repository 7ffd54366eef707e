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
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	p, err := startOn(ctx, ownedBy{e, dead.Process.Pid}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := startOn(ctx, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.remove(context.Background())
	e.sweep()
	if up, err := p.(*box).running(ctx); err == nil {
		t.Errorf("the container of a dead test still exists (running: %v)", up)
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
