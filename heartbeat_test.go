package onbeat_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// deadMan is a dead-man's switch: it keeps the requests that it gets, each as "/path instance".
type deadMan struct {
	*httptest.Server
	mu  sync.Mutex
	got []string
}

func newDeadMan(t *testing.T) *deadMan {
	m := &deadMan{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.got = append(m.got, r.URL.Path+" "+r.Header.Get("Onbeat-Instance"))
	}))
	t.Cleanup(m.Close)
	return m
}

// heard returns the requests for a path.
func (m *deadMan) heard(path string) (list []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, line := range m.got {
		if strings.HasPrefix(line, path+" ") {
			list = append(list, line)
		}
	}
	return list
}

// beating is a dispatcher that beats often.
func (m *deadMan) beating(t *testing.T, c onbeat.Config) *onbeat.Dispatcher {
	t.Helper()
	c.Heartbeat.URL = m.URL + "/all"
	one := dispatcher(t, testredis.Real(t), c)
	one.BeatEvery(200 * time.Millisecond)
	return one
}

// sharedLog is a log that is written and read at once.
type sharedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *sharedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *sharedLog) has(text string) func() bool {
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return strings.Contains(l.b.String(), text)
	}
}

// Heartbeats come while all is well, none comes while all workers hang though tasks wait, and they go on after.
func TestHeartbeat_stopsWhileAllWorkersHang(t *testing.T) {
	t.Parallel()
	m, log := newDeadMan(t), &sharedLog{}
	d := m.beating(t, onbeat.Config{Concurrency: 1, Drain: -1, Log: zerolog.New(log)})
	release := make(chan struct{})
	must(t, d.Handle("job", handlers.Func(func(ctx context.Context, _ *task.Task) error {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil
	})))
	defer run(t, d)()
	testredis.Eventually(t, patience, func() bool { return len(m.heard("/all")) >= 3 }, "heartbeats")
	for range 2 {
		_, err := d.Enqueue(t.Context(), task.New("job", nil))
		must(t, err)
	}
	testredis.Eventually(t, patience, log.has("heartbeats stop"), "a reason to stop")
	before := len(m.heard("/all"))
	time.Sleep(time.Second) // five would come
	if n := len(m.heard("/all")) - before; n > 1 || !log.has("workers_busy")() {
		t.Errorf("%d heartbeats while all workers hang", n)
	}
	close(release)
	testredis.Eventually(t, patience, log.has("heartbeats go on"), "the end of it")
	before = len(m.heard("/all"))
	testredis.Eventually(t, patience, func() bool { return len(m.heard("/all")) >= before+2 }, "heartbeats")
}

// Of two instances the leader's heartbeats come. None comes without a leader; the next one goes on.
func TestHeartbeat_isTheLeaders(t *testing.T) {
	t.Parallel()
	m, ns := newDeadMan(t), testredis.Namespace(t)
	first := m.beating(t, onbeat.Config{Namespace: ns, Release: "v1"})
	stop := run(t, first)
	testredis.Eventually(t, patience, func() bool { return len(m.heard("/all")) >= 2 }, "heartbeats of the first")
	second := m.beating(t, onbeat.Config{Namespace: ns, Release: "v2"})
	stopSecond := run(t, second)
	leads := func(d *onbeat.Dispatcher) string {
		list, err := d.Admin().Instances.List(t.Context())
		must(t, err)
		if l := list.Leader(); l != nil && l.Release == "v2" {
			return l.ID
		}
		return ""
	}
	testredis.Eventually(t, patience, func() bool { return leads(second) != "" }, "the second leads")
	id, before := leads(second), 0
	testredis.Eventually(t, patience, func() bool {
		before = len(m.heard("/all"))
		return before > 0 && strings.HasSuffix(m.heard("/all")[before-1], id)
	}, "its heartbeats")
	began := time.Now()
	testredis.Eventually(t, patience, func() bool { return len(m.heard("/all")) >= before+5 }, "more of them")
	if took := time.Since(began); took < 700*time.Millisecond {
		t.Errorf("5 heartbeats within %v: two instances send them", took)
	}
	for _, line := range m.heard("/all")[before:] {
		if !strings.HasSuffix(line, id) {
			t.Errorf("%s while %s leads", line, id)
		}
	}
	stop()
	stopSecond()
	before = len(m.heard("/all"))
	time.Sleep(time.Second) // five would come
	if n := len(m.heard("/all")) - before; n > 0 {
		t.Errorf("%d heartbeats without a leader", n)
	}
	defer run(t, m.beating(t, onbeat.Config{Namespace: ns, Release: "v2"}))()
	testredis.Eventually(t, patience, func() bool { return len(m.heard("/all")) > before }, "heartbeats of the next")
}

// A schedule's heartbeats tell of a start, a success and a failure of its runs, also of a triggered one.
func TestHeartbeat_tellsHowTheRunsOfAScheduleWent(t *testing.T) {
	t.Parallel()
	m := newDeadMan(t)
	d := dispatcher(t, testredis.Real(t), onbeat.Config{})
	release := make(chan struct{})
	var fails atomic.Bool
	must(t, d.Handle("job", handlers.Func(func(ctx context.Context, _ *task.Task) error {
		select {
		case <-release:
		case <-ctx.Done():
		}
		if fails.Load() {
			return errors.New("broken")
		}
		return nil
	})))
	must(t, d.Declare([]onbeat.Schedule{
		{Name: "nightly", Rule: schedule.Every(time.Hour), Task: "job", MaxAttempts: 1, Heartbeat: &producer.Heartbeat{URL: m.URL + "/done", Start: m.URL + "/start", Fail: m.URL + "/fail"}},
		{Name: "plain", Rule: schedule.Every(time.Hour), Task: "job", MaxAttempts: 1},
	}))
	defer run(t, d)()
	heard := func(path string, n int) {
		t.Helper()
		testredis.Eventually(t, patience, func() bool { return len(m.heard(path)) == n }, "%s", path)
	}
	heard("/start", 1)
	if len(m.heard("/done"))+len(m.heard("/fail")) > 0 {
		t.Errorf("told of an end: %q", m.got)
	}
	close(release)
	heard("/done", 1)
	fails.Store(true)
	_, err := d.Admin().Schedules.Trigger(t.Context(), "nightly", nil)
	must(t, err)
	heard("/fail", 1)
	if len(m.heard("/done")) != 1 || len(m.heard("/start")) > 2 {
		t.Errorf("told %q", m.got)
	}
}

// Trouble of one job, a pause by a person and trouble that only needs a look stop no heartbeat of the dispatcher. Trouble that holds up
// all work does.
func TestOffBeat_isWhatHoldsUpTheDispatcher(t *testing.T) {
	t.Parallel()
	for kind, stops := range map[string]bool{
		admin.NoLeader: true, admin.LeaderIdle: true, admin.WorkersBusy: true, admin.InstanceIdle: true, string(admin.Overdue): true,
		string(admin.Failing): false, string(admin.Hung): false, string(admin.Stale): false, string(admin.Missed): false, string(admin.Skipped): false,
		string(admin.Paused): false, string(admin.Unhandled): false, admin.Waiting: false, admin.DeadTasks: false, admin.LostWrites: false, admin.Archived: false,
	} {
		if err := onbeat.OffBeat(&admin.Status{Trouble: []admin.Trouble{{Kind: kind}}}); (err != nil) != stops {
			t.Errorf("%s: %v", kind, err)
		}
		if err := onbeat.OffBeat(&admin.Status{Trouble: []admin.Trouble{{Kind: kind, Warning: true}}}); err != nil {
			t.Errorf("a warning of %s: %v", kind, err)
		}
	}
	if onbeat.OffBeat(&admin.Status{CouldNotAsk: []admin.Unasked{{Source: "the events"}}}) == nil {
		t.Error("beats though it could not ask")
	}
	d := dispatcher(t, testredis.Client(t), onbeat.Config{})
	status, err := d.Admin().Activity.Status(t.Context())
	must(t, err)
	if onbeat.OffBeat(&status) == nil {
		t.Error("beats without a leader")
	}
	must(t, onbeat.OffBeat(&admin.Status{Trouble: []admin.Trouble{}}))
}
