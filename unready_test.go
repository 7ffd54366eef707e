package onbeat_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// Unready tells each state of a process apart, and ends with Run.
func TestUnready_saysWhy(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	rdb := srv.Client()
	let := make(chan struct{})
	d, err := onbeat.New(rdb, onbeat.Config{
		Namespace: testredis.Namespace(t), Lease: time.Second,
		ReadyCheck: func(ctx context.Context) error {
			select {
			case <-let:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	says := func(want string) {
		t.Helper()
		var got error
		testredis.Eventually(t, 20*time.Second, func() bool {
			got = d.Unready()
			return want == "" && got == nil || want != "" && got != nil && strings.HasPrefix(got.Error(), want)
		}, "Unready says %q; it said %v last", want, got)
		if got != nil && strings.Contains(got.Error(), "\n") {
			t.Errorf("more than a line: %v", got)
		}
	}
	says("not started")
	srv.Stop()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	says("not registered: redis has not answered yet")
	srv.Restart()
	says("starting: the readiness check")
	close(let)
	says("")
	srv.Pause()
	says("not registered: the lease ran out")
	srv.Resume()
	says("")
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	says("stopped")
}

// An instance that drains is not ready while its runs go on.
func TestUnready_whileItDrains(t *testing.T) {
	t.Parallel()
	d, err := onbeat.New(testredis.Client(t), onbeat.Config{Namespace: testredis.Namespace(t)})
	if err != nil {
		t.Fatal(err)
	}
	began, end := make(chan struct{}), make(chan struct{})
	if err := d.Handle("long", handlers.Func(func(context.Context, *task.Task) error {
		close(began)
		<-end
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- d.Run(t.Context()) }()
	if _, err := d.Enqueue(t.Context(), task.New("long", nil)); err != nil {
		t.Fatal(err)
	}
	<-began
	a := d.Admin().Instances
	list, err := a.List(t.Context())
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if err := a.Drain(t.Context(), list.Items[0].ID); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, 30*time.Second, func() bool {
		err := d.Unready()
		return err != nil && strings.HasPrefix(err.Error(), "draining")
	}, "it drains")
	if len(done) > 0 {
		t.Error("Run returned before the run had ended")
	}
	close(end)
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}
