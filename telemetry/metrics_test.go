package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
	"github.com/onbeat/onbeat/telemetry"
)

func TestMetrics_countRunsBySlotTypeAndOutcome(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb, telemetry.Options{Version: "1.2.0", Release: "v1"}, func(c *onbeat.Config) { c.Concurrency = 3 })
		var beats atomic.Int64
		w.must(w.Handle("beat", handlers.Func(func(context.Context, *task.Task) error { beats.Add(1); return nil })))
		w.must(w.Handle("broken", handlers.Func(func(context.Context, *task.Task) error { return errors.New("broken") })))
		w.must(w.Schedule("beat", schedule.Every(time.Hour), "beat", nil))
		w.scrape().want(t, map[string]float64{"onbeat_leader": 0, "onbeat_workers": 0, `onbeat_slots_total{fate="done"}`: 0})
		w.start()
		_, err := w.Enqueue(t.Context(), task.New("broken", nil, task.MaxAttempts(1)))
		w.must(err)
		w.eventually(`onbeat_runs_total{outcome="done",type="beat"}`, 1)
		w.eventually(`onbeat_runs_total{outcome="dead",type="broken"}`, 1)
		w.eventually(`onbeat_slots_total{fate="done"}`, 1)
		w.eventually("onbeat_dead_tasks", 1)
		got := w.scrape()
		got.want(t, map[string]float64{
			"onbeat_leader": 1, "onbeat_workers": 3, "onbeat_workers_busy": 0, "onbeat_slot_lag_seconds": 1, "onbeat_task_wait_seconds": 2,
			`onbeat_run_duration_seconds{type="beat"}`: 1, `onbeat_run_duration_seconds{type="broken"}`: 1,
			`onbeat_instances{state="ready"}`: 1, `onbeat_schedules{state="active"}`: 1, `onbeat_slots_total{fate="missed"}`: 0,
			"onbeat_leader_changes_total": 0, "onbeat_suspicions_total": 0,
			`onbeat_build_info{release="v1",version="1.2.0"}`: 1, `onbeat_script_seconds{script="register"}`: 1,
		})
		if got[`onbeat_claims_total{result="tasks"}`] < 1 || got["onbeat_epoch"] < 1 {
			t.Errorf("%v", got)
		}
		if age, ok := got["onbeat_heartbeat_age_seconds"]; !ok || age > 10 {
			t.Errorf("heartbeat: %v, %v", age, ok)
		}
		if age, ok := got["onbeat_last_push_age_seconds"]; !ok || age > 10 {
			t.Errorf("push: %v, %v", age, ok)
		}
		if ratio, ok := got[`onbeat_schedule_freshness_ratio{schedule="beat"}`]; !ok || ratio > 0.1 {
			t.Errorf("freshness: %v, %v", ratio, ok)
		}
	})
}

// An instance that no longer leads says so, and does not say when it last pushed.
func TestMetrics_leaderIsZeroOnceItHasStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Mini(t).Dialed(t), telemetry.Options{})
	w.must(w.Handle("a", handlers.Func(func(context.Context, *task.Task) error { return nil })))
	w.must(w.Schedule("a", schedule.Every(time.Second), "a", nil))
	stop := w.start()
	w.eventually("onbeat_leader", 1)
	stop()
	got := w.scrape()
	got.want(t, map[string]float64{"onbeat_leader": 0})
	if _, ok := got["onbeat_last_push_age_seconds"]; ok {
		t.Error("an instance that does not lead says when it pushed")
	}
}

// A push that was under way when the term ended returns later.
func TestMetrics_aLatePushIsOfNoLeader(t *testing.T) {
	t.Parallel()
	reg, m, err := telemetry.NewRegistry(telemetry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, reg: reg}
	const age = "onbeat_last_push_age_seconds"
	p, err := m.Bind(testredis.Mini(t).Dialed(t), testredis.Namespace(t))
	w.must(err)
	p.Leads(7)
	p.Pushed(1)
	if _, ok := w.scrape()[age]; !ok {
		t.Error("the leader does not say when it pushed")
	}
	p.Leads(0)
	p.Pushed(1)
	if _, ok := w.scrape()[age]; ok {
		t.Error("an instance that does not lead says when it pushed")
	}
}

// The metrics of a namespace that is split are those of all partitions together.
func TestMetrics_ofPartitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Client(t), telemetry.Options{}, func(c *onbeat.Config) { c.Partitions = 3 })
	w.must(w.Handle("a", handlers.Func(func(context.Context, *task.Task) error { return nil })))
	for i := range 9 {
		w.must(w.Schedule(fmt.Sprint("s", i), schedule.Every(time.Hour), "a", nil))
	}
	list := make([]*task.Task, 60)
	for i := range list {
		list[i] = task.New("later", nil, task.In(time.Hour))
	}
	_, err := w.EnqueueAll(t.Context(), list)
	w.must(err)
	w.start()
	w.eventually("onbeat_leader", 1)
	w.eventually(`onbeat_schedules{state="active"}`, 9)
	w.eventually(`onbeat_pending_tasks{queue="default"}`, 60)
	w.scrape().want(t, map[string]float64{`onbeat_instances{state="ready"}`: 1})
}

func TestMetrics_leaderChangesAreCountedByThoseWhoStay(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	ns := testredis.Namespace(t)
	with := func(release string, lead bool) *world {
		return newWorld(t, rdb, telemetry.Options{}, func(c *onbeat.Config) {
			c.Namespace, c.Release, c.Standby, c.Lease = ns, release, !lead, time.Second
		})
	}
	a := with("v1", false)
	a.start()
	b := with("v1", true)
	stop := b.start()
	b.eventually("onbeat_leader", 1)
	testredis.Eventually(t, patience, func() bool {
		epoch := b.scrape()["onbeat_epoch"]
		return epoch > 0 && a.scrape()["onbeat_epoch"] == epoch
	}, "the one that stays knows the first term")
	c := with("v2", true)
	c.start()
	c.eventually("onbeat_leader", 1)
	b.eventually("onbeat_leader", 0)
	stop()
	a.eventually("onbeat_leader_changes_total", 1)
	a.scrape().want(t, map[string]float64{"onbeat_leader": 0, "onbeat_epoch": c.scrape()["onbeat_epoch"]})
}

func TestScrape_readsWhatWaits(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb, telemetry.Options{})
		for i := range 5 {
			opts := []task.Option{task.Queue("mail")}
			if i < 2 {
				opts = append(opts, task.In(time.Hour))
			}
			_, err := w.Enqueue(t.Context(), task.New("send", nil, opts...))
			w.must(err)
		}
		_, err := w.Enqueue(t.Context(), task.New("send", nil, task.In(time.Hour)))
		w.must(err)
		time.Sleep(20 * time.Millisecond) // so that they have an age
		got := w.scrape()
		got.want(t, map[string]float64{
			`onbeat_due_tasks{queue="mail"}`: 3, `onbeat_pending_tasks{queue="mail"}`: 5, `onbeat_due_tasks{queue="default"}`: 0,
			`onbeat_pending_tasks{queue="default"}`: 1, `onbeat_oldest_due_age_seconds{queue="default"}`: 0,
			`onbeat_unhandled_tasks{type="send"}`: 3, `onbeat_running_tasks`: 0, `onbeat_held_tasks`: 0,
		})
		if age := got[`onbeat_oldest_due_age_seconds{queue="mail"}`]; age < 0.02 || age > 60 {
			t.Errorf("age %v", age)
		}
	})
}

// commands counts what a client sends, a pipeline by its commands.
type commands struct{ n atomic.Int64 }

func (c *commands) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { c.n.Add(1); return next(ctx, cmd) }
}

func (c *commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

func TestScrape_sendsTheSameCommandsHoweverManyTasksWait(t *testing.T) {
	t.Parallel()
	rdb := testredis.Mini(t).Dialed(t)
	sent := &commands{}
	rdb.AddHook(sent)
	w := newWorld(t, rdb, telemetry.Options{})
	cost := func() int64 {
		w.scrape()
		before := sent.n.Load()
		w.scrape()
		return sent.n.Load() - before
	}
	add := func(n int) {
		list := make([]*task.Task, n)
		for i := range list {
			list[i] = task.New("job", nil, task.In(time.Duration(i)*time.Second))
		}
		_, err := w.EnqueueAll(t.Context(), list)
		w.must(err)
	}
	add(10)
	few := cost()
	add(9_990)
	if many := cost(); many != few || few > 40 {
		t.Errorf("%d commands with 10 tasks, %d with 10,000", few, many)
	}
}

func TestScrape_concurrentScrapesShareOneReading(t *testing.T) {
	t.Parallel()
	rdb := testredis.Mini(t).Dialed(t)
	sent := &commands{}
	rdb.AddHook(sent)
	w := newWorld(t, rdb, telemetry.Options{})
	w.scrape()
	before := sent.n.Load()
	w.scrape()
	one := sent.n.Load() - before
	hold := make(chan struct{})
	rdb.AddHook(holding{hold})
	before = sent.n.Load()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { w.scrape() })
	}
	time.Sleep(100 * time.Millisecond) // all of them have come
	close(hold)
	all.Wait()
	if n := sent.n.Load() - before; n != one {
		t.Errorf("8 scrapes at once sent %d commands, one sends %d", n, one)
	}
}

// holding holds up each pipeline until a channel is closed.
type holding struct{ until chan struct{} }

func (h holding) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (h holding) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (h holding) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { <-h.until; return next(ctx, cmds) }
}

func TestScrape_withoutRedisTheProcessStillShowsItsOwn(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(*testing.T, *redis.Client){
		"gone": func(_ *testing.T, rdb *redis.Client) { _ = rdb.Close() },
		"too slow": func(t *testing.T, rdb *redis.Client) {
			hold := make(chan struct{})
			t.Cleanup(func() { close(hold) })
			rdb.AddHook(holding{hold})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := testredis.Mini(t).Dialed(t)
			w := newWorld(t, rdb, telemetry.Options{})
			w.scrape().want(t, map[string]float64{"onbeat_scrape_errors_total": 0, `onbeat_dead_tasks`: 0})
			broken(t, rdb)
			began := time.Now()
			answer := httptest.NewRecorder()
			telemetry.Handler(w.reg).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
			if answer.Code != 200 || time.Since(began) > 10*time.Second {
				t.Fatalf("%d after %s: %s", answer.Code, time.Since(began), answer.Body)
			}
			text := answer.Body.String()
			for _, line := range []string{"onbeat_leader 0", "onbeat_scrape_errors_total 1", `onbeat_slots_total{fate="missed"} 0`} {
				if !strings.Contains(text, "\n"+line+"\n") {
					t.Errorf("no %q", line)
				}
			}
			if strings.Contains(text, "onbeat_dead_tasks") {
				t.Error("what is read from Redis is there, though Redis is not")
			}
		})
	}
}

func TestScrape_schedulesBeyondTheCapShareASeries(t *testing.T) {
	t.Parallel()
	for most, want := range map[int][]string{
		3:  {`{schedule="other"}`, `{schedule="s0"}`, `{schedule="s1"}`, `{schedule="s2"}`},
		-1: {`{schedule="s0"}`, `{schedule="s1"}`, `{schedule="s2"}`, `{schedule="s3"}`, `{schedule="s4"}`},
	} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, testredis.Mini(t).Dialed(t), telemetry.Options{Schedules: most})
			for i := range 6 {
				_, err := w.Admin().Schedules.Apply(t.Context(), producer.Schedule{Name: fmt.Sprintf("s%d", i), Rule: schedule.Every(time.Hour), Task: "a"})
				w.must(err)
			}
			_, err := w.Admin().Schedules.Pause(t.Context(), "s5", "")
			w.must(err)
			got := w.scrape()
			got.want(t, map[string]float64{`onbeat_schedules{state="active"}`: 5, `onbeat_schedules{state="paused"}`: 1})
			if list := got.of("onbeat_schedule_freshness_ratio"); strings.ReplaceAll(strings.Join(list, " "), "onbeat_schedule_freshness_ratio", "") != strings.Join(want, " ") {
				t.Errorf("%q", list)
			}
		})
	}
}

func TestScrape_queuesAndTypesBeyondTheCapShareASeries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Mini(t).Dialed(t), telemetry.Options{Names: 2})
	for i := range 5 {
		_, err := w.Enqueue(t.Context(), task.New(fmt.Sprintf("t%d", i), nil, task.Queue(fmt.Sprintf("q%d", i))))
		w.must(err)
	}
	time.Sleep(5 * time.Millisecond)
	got := w.scrape()
	got.want(t, map[string]float64{
		`onbeat_pending_tasks{queue="q0"}`: 1, `onbeat_pending_tasks{queue="other"}`: 3, `onbeat_unhandled_tasks{type="other"}`: 3,
	})
	if n := len(got.of("onbeat_pending_tasks")); n != 3 {
		t.Errorf("%d series", n)
	}
}

func TestNewMetrics_twiceInOneRegistryNeedsALabel(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	for _, name := range []string{"a", "b"} {
		if _, err := telemetry.NewMetrics(prometheus.WrapRegistererWith(prometheus.Labels{"namespace": name}, reg), telemetry.Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := telemetry.NewMetrics(prometheus.WrapRegistererWith(prometheus.Labels{"namespace": "b"}, reg), telemetry.Options{}); err == nil {
		t.Error("two dispatchers share their series")
	}
}
