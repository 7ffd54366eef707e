package onbeat_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// rightsOf are the rules that docs/rights.md names for a role, in a namespace.
func rightsOf(t *testing.T, role, namespace string) []string {
	t.Helper()
	text, err := os.ReadFile("docs/rights.md")
	must(t, err)
	_, rest, ok := strings.Cut(string(text), "\n## "+role+"\n")
	_, rest, ok2 := strings.Cut(rest, "\n```\n")
	rules, _, ok3 := strings.Cut(rest, "\n```\n")
	if !ok || !ok2 || !ok3 {
		t.Fatalf("docs/rights.md has no rules under %q", role)
	}
	rules = strings.ReplaceAll(rules, "NAMESPACE", namespace)
	return strings.Fields(strings.TrimPrefix(strings.ReplaceAll(rules, "\\\n", " "), "ACL SETUSER NAME on >PASSWORD "))
}

// The rules of docs/rights.md are those that the program knows, and each is enough for what its role does.
func TestRights_documentedAreEnough(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	t.Run("an instance", func(t *testing.T) {
		t.Parallel()
		ns := testredis.Namespace(t)
		rules := rightsOf(t, "An instance", ns)
		sameRules(t, rules, queue.ACL(queue.AsInstance, queue.Partition{Namespace: ns}, false))
		rdb := testredis.User(t, admin, rules)
		works(t, rdb, ns)
		movesOutbox(t, dispatcher(t, rdb, onbeat.Config{Namespace: ns}).Queue())
	})
	t.Run("a producer", func(t *testing.T) {
		t.Parallel()
		ns := testredis.Namespace(t)
		rules := rightsOf(t, "A producer", ns)
		sameRules(t, rules, queue.ACL(queue.AsProducer, queue.Partition{Namespace: ns}, false))
		d := dispatcher(t, testredis.User(t, admin, rules), onbeat.Config{Namespace: ns})
		for _, opts := range [][]task.Option{{task.ID("x")}, {task.Unique("u", time.Hour)}, {task.Key("k", 1), task.In(time.Hour)}} {
			_, err := d.Enqueue(t.Context(), task.New("job", nil, opts...))
			must(t, err)
		}
		_, err := d.Enqueue(t.Context(), task.New("job", nil, task.Unique("u", time.Hour)))
		if !errors.Is(err, task.ErrDuplicate) {
			t.Errorf("the second of a window: %v", err)
		}
		if _, err := d.Queue().Cancel(t.Context(), "x", "", false); !errors.Is(err, task.ErrDenied) {
			t.Errorf("a producer cancels: %v", err)
		}
	})
	t.Run("a reader", func(t *testing.T) {
		t.Parallel()
		ns := testredis.Namespace(t)
		works(t, admin, ns)
		rules := rightsOf(t, "A reader", ns)
		sameRules(t, rules, queue.ACL(queue.AsReader, queue.Partition{Namespace: ns}, false))
		d := dispatcher(t, testredis.User(t, admin, rules), onbeat.Config{Namespace: ns})
		reads(t, d)
		if _, err := d.Enqueue(t.Context(), task.New("job", nil)); !errors.Is(err, task.ErrDenied) {
			t.Errorf("a reader enqueues: %v", err)
		}
	})
}

// movesOutbox does to Redis what the mover of an outbox does.
func movesOutbox(t *testing.T, q *queue.Queue) {
	t.Helper()
	now, err := q.Now(t.Context())
	must(t, err)
	x := task.New("job", nil, task.ID("of an outbox"))
	for range 2 {
		_, _, err = q.Move(t.Context(), []*task.Task{x}, queue.Moving{Began: now, Marks: map[*task.Task]string{x: "mark"}})
		must(t, err)
	}
	must(t, q.Moved(t.Context(), []string{"mark"}))
	must(t, q.Tell(t.Context(), "outbox refused", "task", x.ID))
}

func sameRules(t *testing.T, documented []string, known string) {
	t.Helper()
	want := strings.Fields(known)
	slices.Sort(documented)
	slices.Sort(want)
	if !slices.Equal(documented, want) {
		t.Errorf("documented: %s\nknown to the program: %s", strings.Join(documented, " "), strings.Join(want, " "))
	}
}

// works runs a dispatcher through what it does: slots, overlap, tasks with keys and limits, failures, the dead, cancelling,
// changes of schedules, a second that takes over.
func works(t *testing.T, rdb redis.UniversalClient, ns string) {
	t.Helper()
	ctx := t.Context()
	var ran atomic.Int64
	make := func() *onbeat.Dispatcher {
		d := dispatcher(t, rdb, onbeat.Config{Namespace: ns, Lease: time.Second, Concurrency: 4, Limits: map[string]int{"job": 2}})
		must(t, d.Handle("job", handlers.Func(func(ctx context.Context, tk *task.Task) error {
			ran.Add(1)
			switch tk.ID {
			case "fails":
				return errors.New("it was to")
			case "long":
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})))
		rule := schedule.Every(50 * time.Millisecond)
		rule.Overlap = schedule.OverlapReplace
		must(t, d.Schedule("s", rule, "job", nil))
		must(t, d.Schedule("stays", schedule.Every(time.Hour), "job", nil))
		return d
	}
	d := make()
	stop := run(t, d)
	for _, opts := range [][]task.Option{
		{task.ID("fails"), task.MaxAttempts(2), task.Retry(time.Millisecond, time.Millisecond)}, {task.ID("long")},
		{task.ID("k1"), task.Key("k", 1)}, {task.ID("k2"), task.Key("k", 1)}, {task.ID("kept"), task.Keep(time.Hour)}, {task.Unique("u", time.Hour)},
	} {
		_, err := d.Enqueue(ctx, task.New("job", nil, opts...))
		must(t, err)
	}
	testredis.Eventually(t, patience, func() bool { return ran.Load() > 20 }, "tasks run")
	testredis.Eventually(t, patience, func() bool { f, err := d.Queue().Task(ctx, "fails"); return err == nil && f.State == task.Dead }, "one is dead")
	_, err := d.Queue().Cancel(ctx, "long", "by hand", false)
	must(t, err)
	f, err := d.Queue().Task(ctx, "fails")
	must(t, err)
	_, err = d.Queue().Revive(ctx, []*task.Task{f.Task})
	must(t, err)
	reads(t, d)
	must(t, d.Queue().BeginSession(ctx, "token", "session", time.Now().Add(time.Hour)))
	must(t, d.Queue().EndSession(ctx, "token", "session"))
	list := d.Schedules()
	_, err = list.Pause(ctx, "s", "for a while")
	must(t, err)
	_, err = list.Resume(ctx, "s")
	must(t, err)
	_, err = list.Trigger(ctx, "s", nil)
	must(t, err)
	run(t, make())
	stop()
	before := ran.Load()
	testredis.Eventually(t, patience, func() bool { return ran.Load() > before+5 }, "the other goes on")
	must(t, list.Delete(ctx, "s"))
	_, err = d.Queue().Tidy(ctx, time.Second)
	must(t, err)
	_, err = d.Queue().Mend(ctx, nil)
	must(t, err)
}

// reads makes all calls that change nothing.
func reads(t *testing.T, d *onbeat.Dispatcher) {
	t.Helper()
	ctx, q := t.Context(), d.Queue()
	for _, s := range []task.State{task.Due, task.Running, task.Dead, task.Done} {
		_, err := q.List(ctx, s, queue.ListOptions{Limit: 10})
		must(t, err)
	}
	_, err := q.Task(ctx, "kept")
	if !errors.Is(err, task.ErrNotFound) {
		must(t, err)
	}
	_, err = q.Counts(ctx)
	must(t, err)
	_, err = q.Events(ctx, time.Time{}, 10)
	must(t, err)
	must(t, q.History(ctx, time.Time{}, func(history.Entry) error { return nil }))
	_, err = q.HistorySince(ctx)
	must(t, err)
	reg, err := d.Instances()
	must(t, err)
	_, err = reg.List(ctx)
	must(t, err)
	_, _, err = q.Lanes(ctx)
	must(t, err)
	_, err = q.SchedulesNamed(ctx, []string{"s"})
	must(t, err)
	_, err = q.Schedules(ctx, func([]queue.Stored) error { return nil })
	must(t, err)
	_, _, err = q.ChangedSince(ctx, 0)
	must(t, err)
	_, err = q.Retired(ctx, []string{"s"})
	must(t, err)
	_, err = q.AllGone(ctx, true)
	must(t, err)
	_, err = q.Revisions(ctx, "s")
	must(t, err)
	_, err = q.Exist(ctx, []string{"x"})
	must(t, err)
	_, err = d.Admin().Schedules.Get(ctx, "stays")
	must(t, err)
}

// Each right that is missing is named, by itself.
func TestRights_missingOnesAreNamed(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	for _, role := range []queue.Role{queue.AsInstance, queue.AsProducer, queue.AsReader} {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			p := queue.Partition{Namespace: testredis.Namespace(t)}
			all := strings.Fields(queue.ACL(role, p, true))
			for i, rule := range all {
				q, err := queue.New(testredis.User(t, admin, slices.Delete(slices.Clone(all), i, i+1)), p, queue.Caps{})
				must(t, err)
				missing, err := q.Missing(t.Context(), role, true)
				must(t, err)
				if !slices.Equal(missing, []string{rule}) {
					t.Errorf("without %s: %v is named", rule, missing)
				}
			}
			q, err := queue.New(testredis.User(t, admin, all), p, queue.Caps{})
			must(t, err)
			missing, err := q.Missing(t.Context(), role, true)
			must(t, err)
			if len(missing) > 0 {
				t.Errorf("with all of them: %v", missing)
			}
		})
	}
}

// A user with a wrong password lacks no single right. The error says that the password is refused.
func TestRights_ofAWrongPassword(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	rdb := testredis.User(t, admin, []string{"+@all", "~*", "&*"}, func(o *redis.Options) { o.Password = "wrong" })
	for _, role := range []queue.Role{queue.AsInstance, queue.AsProducer, queue.AsReader} {
		q, err := queue.New(rdb, queue.Partition{Namespace: testredis.Namespace(t)}, queue.Caps{})
		must(t, err)
		if missing, err := q.Missing(t.Context(), role, true); !errors.Is(err, task.ErrDenied) || !strings.Contains(err.Error(), "WRONGPASS") {
			t.Errorf("%s: %v lack, %v", role, missing, err)
		}
	}
	err := dispatcher(t, rdb, onbeat.Config{}).Run(t.Context())
	if !errors.Is(err, task.ErrDenied) || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("an instance: %v", err)
	}
}

// An instance whose user lacks a right names that right, and does not begin.
func TestRun_saysWhichRightsAreMissing(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	ns := testredis.Namespace(t)
	rules := strings.Fields(queue.ACL(queue.AsInstance, queue.Partition{Namespace: ns}, false))
	rules = slices.DeleteFunc(rules, func(r string) bool { return r == "+publish" })
	d := dispatcher(t, testredis.User(t, admin, rules), onbeat.Config{Namespace: ns})
	err := d.Run(t.Context())
	if !errors.Is(err, task.ErrDenied) || !strings.Contains(err.Error(), "+publish") {
		t.Errorf("%v, want %v that names +publish", err, task.ErrDenied)
	}
	if keys := admin.Keys(t.Context(), "onbeat:\\{"+ns+"\\}:*").Val(); len(keys) > 0 {
		t.Errorf("it left %v", keys)
	}
}

// Tenants beside each other: each has its namespace, and nothing of the other's.
func TestRights_tenantsAreApart(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	mine, theirs := testredis.Namespace(t), testredis.Namespace(t)
	rdb := testredis.User(t, admin, rightsOf(t, "An instance", mine))
	d := dispatcher(t, rdb, onbeat.Config{Namespace: theirs})
	_, err := d.Enqueue(t.Context(), task.New("job", nil))
	if !errors.Is(err, task.ErrDenied) {
		t.Errorf("enqueue in another's namespace: %v", err)
	}
	if err := d.Run(t.Context()); !errors.Is(err, task.ErrDenied) {
		t.Errorf("run in another's namespace: %v", err)
	}
	if err := rdb.Subscribe(t.Context(), "onbeat:{"+theirs+"}:wake").Ping(t.Context()); err == nil {
		sub := rdb.Subscribe(t.Context(), "onbeat:{"+theirs+"}:wake")
		defer func() { _ = sub.Close() }()
		if _, err := sub.Receive(t.Context()); err == nil {
			t.Error("it hears the other's messages")
		}
	}
}

// An error that lasts does not keep an instance from ending: it leaves when its drain is over.
func TestRun_aLastingErrorDoesNotOutliveTheDrain(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	ns := testredis.Namespace(t)
	rdb := testredis.User(t, admin, strings.Fields(queue.ACL(queue.AsInstance, queue.Partition{Namespace: ns}, false)))
	d := dispatcher(t, rdb, onbeat.Config{Namespace: ns, Lease: time.Second, Drain: time.Second})
	began, goOn := make(chan struct{}), make(chan struct{})
	must(t, d.Handle("job", handlers.Func(func(context.Context, *task.Task) error {
		close(began)
		<-goOn
		return nil
	})))
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- d.Run(ctx) }()
	_, err := d.Enqueue(t.Context(), task.New("job", nil, task.ID("x")))
	must(t, err)
	<-began
	prefix := "onbeat:{" + ns + "}:" // heartbeats pass, and nothing can be settled
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", rdb.Options().Username, "resetkeys", "%R~"+prefix+"tasks", "~"+prefix+"[^t]*", "~"+prefix+"trial").Err())
	close(goOn)
	time.Sleep(300 * time.Millisecond) // it tries, and fails
	stop()
	select {
	case err := <-over:
		t.Log(err)
	case <-time.After(6 * time.Second):
		t.Error("it has not ended 5 s after its drain")
	}
	places := 0
	for _, key := range admin.Keys(t.Context(), "onbeat:\\{"+ns+"\\}:running:*").Val() {
		if admin.HExists(t.Context(), key, "x").Val() {
			places++
		}
	}
	if places != 1 {
		t.Errorf("the task runs in %d places, want one, from which it is taken back", places)
	}
}

// On a Cluster a user needs the rules of its role on every node, and the rules for the questions of the client to the cluster.
func TestRights_onACluster(t *testing.T) {
	t.Parallel()
	c := testredis.Cluster(t)
	ns := testredis.Namespace(t)
	rules := append(strings.Fields(queue.ACL(queue.AsInstance, queue.Partition{Namespace: ns}, false)), clusterRules(t)...)
	admin, err := onbeat.Dial(c.URL())
	must(t, err)
	t.Cleanup(func() { _ = admin.Close() })
	cluster, ok := admin.(*redis.ClusterClient)
	if !ok {
		t.Fatalf("%T", admin)
	}
	args := []any{"ACL", "SETUSER", "narrow", "reset", "resetchannels", "on", ">secret"}
	for _, r := range rules {
		args = append(args, r)
	}
	must(t, cluster.ForEachShard(t.Context(), func(ctx context.Context, node *redis.Client) error { return node.Do(ctx, args...).Err() }))
	rdb, err := onbeat.Dial(strings.Replace(c.URL(), "://", "://narrow:secret@", 1))
	must(t, err)
	t.Cleanup(func() { _ = rdb.Close() })
	works(t, rdb, ns)
}

// clusterRules are those that docs/rights.md has for a Cluster.
func clusterRules(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("docs/rights.md")
	must(t, err)
	_, rest, _ := strings.Cut(string(text), "## Redis Cluster\n")
	_, rest, _ = strings.Cut(rest, "`")
	rules, _, ok := strings.Cut(rest, "`")
	if !ok {
		t.Fatal("docs/rights.md has no rules for a Cluster")
	}
	return strings.Fields(rules)
}

// With durability a user needs WAIT besides, and no more.
func TestRights_withDurability(t *testing.T) {
	t.Parallel()
	primary, _ := testredis.Replicated(t)
	ns := testredis.Namespace(t)
	rdb := testredis.User(t, primary.Client(), strings.Fields(queue.ACL(queue.AsInstance, queue.Partition{Namespace: ns}, true)))
	d := dispatcher(t, rdb, onbeat.Config{Namespace: ns, Durability: onbeat.Durability{Replicas: 1}})
	var ran atomic.Int64
	must(t, d.Handle("job", handlers.Func(func(context.Context, *task.Task) error { ran.Add(1); return nil })))
	must(t, d.Schedule("s", schedule.Every(50*time.Millisecond), "job", nil))
	run(t, d)
	testredis.Eventually(t, patience, func() bool { return ran.Load() > 5 }, "slots run")
}
