package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Dispatchers are started and stopped at random moments, again and again. No goroutine and no connection is left, and only
// keys that a bound or a policy keeps.
func TestFault_startAndStopLeaveNothing(t *testing.T) {
	t.Parallel()
	w, srv := privateWorld(t)
	watch := srv.Client()
	connections := func() int { return strings.Count(watch.ClientList(t.Context()).Val(), "\n") }
	testredis.Eventually(t, 5*time.Second, func() error { return watch.Ping(t.Context()).Err() }, "no Redis")
	before := connections()
	n := testredis.Size(40, 1000)
	did := w.startsAndStops(n)
	testredis.Eventually(t, 30*time.Second, func() bool { return connections() <= before }, "connections are left: %d at first", before)
	left := watch.Keys(t.Context(), "*").Val()
	if len(left) > 25 {
		t.Errorf("%d keys are left after %d rounds: %v", len(left), n, left)
	}
	members := watch.ZCard(t.Context(), "onbeat:{"+w.NS+"}:instances").Val()
	if members != 0 {
		t.Errorf("%d instances are still registered", members)
	}
	if did.Ran < n/4 {
		t.Errorf("only %d of %d rounds ran a task", did.Ran, n)
	}
	w.Row("dispatchers started and stopped", nil, fmt.Sprintf("%d rounds, %d of them ran a task; goroutines %d before, %d after; %d connections and %d keys left",
		n, did.Ran, did.Before, did.After, connections(), len(left)))
}

// leakRounds says how many rounds a process starts and stops: see TestMain. Its other environment is that of a command.
const leakRounds = "ONBEAT_TEST_LEAK_ROUNDS"

// rounds is what that process prints.
type rounds struct{ Ran, Before, After int }

// startsAndStops runs the rounds in a process of their own: this test's binary. So the goroutines there are theirs alone.
func (w *world) startsAndStops(n int) (did rounds) {
	w.Helper()
	self, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	cmd := exec.CommandContext(w.Context(), self)
	cmd.Env = append(append(os.Environ(), w.Env()...), fmt.Sprintf("%s=%d", leakRounds, n))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		w.Fatalf("%v: %s", err, errs.String())
	}
	if err := json.Unmarshal(out.Bytes(), &did); err != nil {
		w.Fatalf("%v in %q", err, out.String())
	}
	return did
}

// makeRounds is that process.
func makeRounds() error {
	var n int
	if _, err := fmt.Sscan(os.Getenv(leakRounds), &n); err != nil {
		return err
	}
	goroutines := goleak.IgnoreCurrent()
	did := rounds{Before: runtime.NumGoroutine()}
	for i := range n {
		ran, err := startAndStop(i)
		if err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		if ran {
			did.Ran++
		}
	}
	if err := testredis.Leaks(goroutines); err != nil {
		return err
	}
	did.After = runtime.NumGoroutine()
	return json.NewEncoder(os.Stdout).Encode(did)
}

// startAndStop starts a dispatcher, and stops it at a moment that depends on the round. It reports whether it waited for a task.
func startAndStop(round int) (ran bool, err error) {
	rdb, err := onbeat.Dial(os.Getenv("ONBEAT_REDIS_URL"))
	if err != nil {
		return false, err
	}
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: os.Getenv("ONBEAT_NAMESPACE"), Release: fmt.Sprint(round), Drain: time.Second})
	if err != nil {
		return false, err
	}
	began := make(chan struct{}, 1000)
	if err := d.Handle("job", handlers.Func(func(context.Context, *task.Task) error {
		began <- struct{}{}
		return nil
	})); err != nil {
		return false, err
	}
	if err := d.Schedule("beat", schedule.Every(50*time.Millisecond), "job", nil); err != nil {
		return false, err
	}
	run, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(run) }()
	switch round % 4 {
	case 0: // until it works
		select {
		case <-began:
			ran = true
		case <-time.After(20 * time.Second):
			err = errors.New("it runs nothing")
		}
	case 1:
		time.Sleep(rand.N(5 * time.Millisecond)) // while it registers
	case 2:
		time.Sleep(rand.N(100 * time.Millisecond)) // while it begins to work
	}
	stop()
	return ran, errors.Join(err, <-done, rdb.Close())
}
