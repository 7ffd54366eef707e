package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// partsOn returns the admin of a namespace with a partition on each client.
func partsOn(t *testing.T, ns string, clients ...redis.UniversalClient) (*admin.Admin, *split.Producers) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	m := split.Map{Partitions: len(clients)}
	var producers []*producer.Producer
	var admins []*admin.Admin
	for i, rdb := range clients {
		q, err := queue.New(rdb, queue.Partition{Namespace: ns, Number: i + 1}, queue.Caps{})
		must(err)
		p, err := producer.New(q.Client(), ns, producer.Config{NewID: m.IDs(i + 1)})
		must(err)
		a, err := admin.New(q.Client(), ns, p, nil)
		must(err)
		producers, admins = append(producers, p), append(admins, a)
	}
	all := split.NewProducers(func(ctx context.Context) ([]string, error) { return queue.Split(ctx, clients[0], ns, len(clients)) }, producers)
	return admin.Join(all, admins), all
}

// A list of all partitions has each task once, in the order of one list, however small its pages are.
func TestJoin_listsInOneOrder(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	a, p := partsOn(t, testredis.Namespace(t), rdb, rdb, rdb)
	list := make([]*task.Task, 200)
	for i := range list {
		list[i] = task.New("job", nil, task.ID(fmt.Sprint("t", i)), task.In(time.Hour+time.Duration(i*7919%200)*time.Second))
	}
	results, err := p.EnqueueAll(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 7, 50, 1000} {
		var got []admin.Task
		q := admin.TaskQuery{Limit: limit}
		for pages := 0; ; pages++ {
			page, err := a.Tasks.List(t.Context(), q)
			if err != nil || len(page.Items) > limit || pages > 500 {
				t.Fatal(len(page.Items), pages, err)
			}
			got = append(got, page.Items...)
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		if len(got) != len(list) || !slices.IsSortedFunc(got, func(a, b admin.Task) int { return a.Due.Compare(b.Due) }) {
			t.Errorf("limit %d: %d tasks, want %d in due order", limit, len(got), len(list))
		}
	}
	for _, r := range results[:20] {
		if x, err := a.Tasks.Get(t.Context(), r.ID); err != nil || x.State != admin.TaskPlanned {
			t.Errorf("%s: %+v %v", r.ID, x.State, err)
		}
		if _, err := a.Tasks.Cancel(t.Context(), r.ID); err != nil {
			t.Error(err)
		}
	}
	count, err := a.Activity.Counts(t.Context())
	if err != nil || count.Later != 180 || len(count.Lanes) != 1 {
		t.Errorf("%+v %v", count, err)
	}
}

// Bulk actions and failures reach all partitions.
func TestJoin_bulkReachesAll(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	a, p := partsOn(t, testredis.Namespace(t), rdb, rdb, rdb)
	list := make([]*task.Task, 60)
	for i := range list {
		list[i] = task.New("job", nil, task.ID(fmt.Sprint("t", i)), task.In(time.Hour))
	}
	if _, err := p.EnqueueAll(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var sum admin.BulkResult
	b := admin.Bulk{Action: admin.CancelTasks, Filter: admin.TaskFilter{Type: "job"}, DryRun: true}
	for {
		page, err := a.Tasks.Bulk(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		sum.Add(page)
		if b.After = page.Next; b.After == "" {
			break
		}
	}
	if sum.Matched != 60 {
		t.Errorf("%d matched", sum.Matched)
	}
	begun, err := a.Bulks.Begin(t.Context(), admin.BulkSpec{Action: admin.CancelTasks, Filter: admin.TaskFilter{Type: "job"}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := a.Bulks.List(t.Context())
	if err != nil || len(all.Items) != 1 || all.Items[0].ID != begun.ID || all.Items[0].State != admin.BulkWaiting {
		t.Errorf("%+v %v", all, err)
	}
	if stopped, err := a.Bulks.Stop(t.Context(), begun.ID); err != nil || stopped.State != admin.BulkStopped {
		t.Errorf("%+v %v", stopped, err)
	}
}

// Events of all partitions are read in one order, from any place on, each once.
func TestJoin_eventsInOneOrder(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	a, _ := partsOn(t, testredis.Namespace(t), rdb, rdb, rdb)
	for i := range 30 {
		if _, err := a.Schedules.Apply(t.Context(), producer.Schedule{Name: fmt.Sprint("s", i), Rule: schedule.Every(time.Hour), Task: "job"}); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := a.Activity.Events(t.Context(), admin.EventQuery{})
	if err != nil || len(whole.Items) != 30 {
		t.Fatal(len(whole.Items), err)
	}
	var got []admin.Event
	for q := (admin.EventQuery{After: "0", Limit: 4}); ; {
		page, err := a.Activity.Events(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, page.Items...)
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	ids := func(list []admin.Event) (out []string) {
		for _, e := range list {
			out = append(out, e.ID)
		}
		return out
	}
	if !slices.Equal(ids(got), ids(whole.Items)) {
		t.Errorf("by pages %v\nat once %v", ids(got), ids(whole.Items))
	}
	for _, bad := range []string{"x", "1-1@0", "1-1@4", "1-1@x", "1@1@1", "1-1@1,1-1@4"} {
		if _, err := a.Activity.Events(t.Context(), admin.EventQuery{After: bad}); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// While the node of a partition is away, each answer says so, and none is taken for well.
func TestJoin_saysWhatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	first, second := testredis.Private(t), testredis.Private(t)
	ns := testredis.Namespace(t)
	a, _ := partsOn(t, ns, first.Client(), second.Client())
	for i := range 10 {
		if _, err := a.Schedules.Apply(t.Context(), producer.Schedule{Name: fmt.Sprint("s", i), Rule: schedule.Every(time.Hour), Task: "job"}); err != nil {
			t.Fatal(err)
		}
	}
	named := func(prefix string, partition int) string {
		for i := 0; ; i++ {
			if name := fmt.Sprint(prefix, i); (split.Map{Partitions: 2}).Of(name) == partition {
				return name
			}
		}
	}
	beatOf := func(names ...string) (admin.Beat, error) {
		return a.Activity.Beat(t.Context(), admin.BeatQuery{Schedules: names})
	}
	if b, err := beatOf(named("s", 1), named("gone", 2)); err != nil || len(b.CouldNotAsk) > 0 || len(b.Schedules) != 1 || !slices.Equal(b.Unknown, []string{named("gone", 2)}) {
		t.Errorf("one is gone: %+v, %v", b, err)
	}
	if _, err := beatOf(named("gone", 1), named("gone", 2)); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("all are gone: %v", err)
	}
	second.Stop()
	if _, err := beatOf(named("s", 2)); !errors.Is(err, task.ErrUnreachable) {
		t.Errorf("all lie where nobody answers: %v", err)
	}
	for way, a := range map[string]*admin.Admin{"direct": a, "http": served(t, a)} {
		for what, ask := range asked(t, a) {
			if unasked, err := ask(); err != nil || len(unasked) != 1 || unasked[0].Source != "partition 2" || unasked[0].Error == "" {
				t.Errorf("%s, %s: %v %v", what, way, unasked, err)
			}
		}
	}
	ctx := t.Context()
	s, err := a.Activity.Status(ctx)
	if err != nil || s.Well || !slices.ContainsFunc(s.Trouble, func(x admin.Trouble) bool { return x.Kind == admin.NoPartition && x.Name == "2" }) {
		t.Errorf("%+v %v", s, err)
	}
	for paused, change := range map[bool]func() error{
		true:  func() error { _, err := a.Instances.Pause(ctx, time.Minute, "why"); return err },
		false: func() error { return a.Instances.Resume(ctx) },
	} {
		if err := change(); !errors.Is(err, task.ErrUnreachable) || !strings.Contains(err.Error(), "1 other partition") {
			t.Errorf("%v", err)
		}
		if list, err := a.Instances.List(ctx); err != nil || list.PausedUntil.IsZero() == paused {
			t.Errorf("the partition that answers is paused until %v: %v", list.PausedUntil, err)
		}
	}
	first.Stop()
	for what, f := range asked(t, a) {
		if _, err := f(); !errors.Is(err, task.ErrUnreachable) {
			t.Errorf("%s of none: %v", what, err)
		}
	}
	if _, err := a.Activity.Status(ctx); !errors.Is(err, task.ErrUnreachable) {
		t.Errorf("status of none: %v", err)
	}
}

// asked are the questions whose answers say which partitions are missing.
func asked(t *testing.T, a *admin.Admin) map[string]func() ([]admin.Unasked, error) {
	t.Helper()
	ctx := t.Context()
	return map[string]func() ([]admin.Unasked, error){
		"schedules": func() ([]admin.Unasked, error) { l, err := a.Schedules.List(ctx); return l.CouldNotAsk, err },
		"deleted":   func() ([]admin.Unasked, error) { l, err := a.Schedules.Deleted(ctx); return l.CouldNotAsk, err },
		"runs": func() ([]admin.Unasked, error) {
			l, err := a.Schedules.Runs(ctx, "", 10, "")
			return l.CouldNotAsk, err
		},
		"tasks": func() ([]admin.Unasked, error) {
			l, err := a.Tasks.List(ctx, admin.TaskQuery{})
			return l.CouldNotAsk, err
		},
		"failures": func() ([]admin.Unasked, error) {
			l, err := a.Tasks.Failures(ctx, admin.FailureQuery{})
			return l.CouldNotAsk, err
		},
		"instances": func() ([]admin.Unasked, error) { l, err := a.Instances.List(ctx); return l.CouldNotAsk, err },
		"counts":    func() ([]admin.Unasked, error) { l, err := a.Activity.Counts(ctx); return l.CouldNotAsk, err },
		"events": func() ([]admin.Unasked, error) {
			l, err := a.Activity.Events(ctx, admin.EventQuery{})
			return l.CouldNotAsk, err
		},
		"summary": func() ([]admin.Unasked, error) { l, err := a.Activity.Summary(ctx, 0); return l.CouldNotAsk, err },
		"trends":  func() ([]admin.Unasked, error) { l, err := a.Activity.Trends(ctx, 0); return l.CouldNotAsk, err },
		"beat": func() ([]admin.Unasked, error) {
			l, err := a.Activity.Beat(ctx, admin.BeatQuery{})
			return l.CouldNotAsk, err
		},
		"bulks": func() ([]admin.Unasked, error) { l, err := a.Bulks.List(ctx); return l.CouldNotAsk, err },
		"audit": func() ([]admin.Unasked, error) {
			l, err := a.Activity.Audit(ctx, audit.Options{})
			if l.OK() {
				t.Error("the audit is well")
			}
			return l.CouldNotAsk, err
		},
	}
}

// An instance that is asked to resign, drain or pause is asked in every partition.
func TestJoin_asksAnInstanceEverywhere(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	ns := testredis.Namespace(t)
	a, _ := partsOn(t, ns, rdb, rdb)
	var regs []*instance.Registry
	for i := range 2 {
		q, err := queue.New(rdb, queue.Partition{Namespace: ns, Number: i + 1}, queue.Caps{})
		if err != nil {
			t.Fatal(err)
		}
		reg, err := instance.NewRegistry(q.Client(), ns)
		if err != nil {
			t.Fatal(err)
		}
		regs = append(regs, reg)
		for _, id := range []string{"a", "b"} {
			gen, _, _, err := reg.Register(t.Context(), instance.Config{ID: id, Release: "v1", Lease: time.Minute}, instance.Past{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := reg.Ready(t.Context(), id, gen, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
	}
	leads := func(id string) int {
		list, err := a.Instances.List(t.Context())
		if err != nil || len(list.Items) != 2 {
			t.Fatal(list, err)
		}
		for _, i := range list.Items {
			if i.ID == id {
				return len(i.Leads)
			}
		}
		return -1
	}
	if n := leads("a") + leads("b"); n != 2 {
		t.Errorf("%d partitions are led", n)
	}
	if err := a.Instances.Resign(t.Context(), "a"); err != nil || leads("b") != 2 {
		t.Errorf("b leads %d: %v", leads("b"), err)
	}
	if p, err := a.Instances.Promote(t.Context(), "v1"); err != nil || !p.Leads {
		t.Errorf("%+v %v", p, err)
	}
	if _, err := a.Instances.Pause(t.Context(), time.Minute, "why"); err != nil {
		t.Error(err)
	}
	if list, err := a.Instances.List(t.Context()); err != nil || list.PausedUntil.IsZero() || list.PauseReason != "why" {
		t.Errorf("%+v %v", list, err)
	}
	if err := errors.Join(a.Instances.Resume(t.Context()), a.Instances.Drain(t.Context(), "a")); err != nil {
		t.Error(err)
	}
	if list, err := a.Instances.List(t.Context()); err != nil || !list.PausedUntil.IsZero() {
		t.Errorf("%+v %v", list, err)
	}
	for i, reg := range regs {
		list, err := reg.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			if (x.State == "draining") != (x.ID == "a") {
				t.Errorf("partition %d: %s is %s", i+1, x.ID, x.State)
			}
		}
	}
	if err := a.Instances.Drain(t.Context(), "nobody"); !errors.Is(err, task.ErrNotFound) {
		t.Error(err)
	}
}

// An instance that one partition does not know yet is not ready, or a deployment would go on too early. A loss names its partition.
func TestJoin_countsNoInstanceTooEarly(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	ns := testredis.Namespace(t)
	a, _ := partsOn(t, ns, rdb, rdb)
	for i := range 2 {
		q, err := queue.New(rdb, queue.Partition{Namespace: ns, Number: i + 1}, queue.Caps{})
		if err != nil {
			t.Fatal(err)
		}
		reg, err := instance.NewRegistry(q.Client(), ns)
		if err != nil {
			t.Fatal(err)
		}
		gen, _, _, err := reg.Register(t.Context(), instance.Config{ID: "a", Release: "v1", Lease: time.Minute}, instance.Past{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := reg.Ready(t.Context(), "a", gen, time.Minute); err != nil {
			t.Fatal(err)
		}
		want := []string{"starting", "ready"}[i]
		if list, err := a.Instances.List(t.Context()); err != nil || len(list.Items) != 1 || list.Items[0].State != want {
			t.Errorf("known in %d of 2 partitions, it is not %s: %+v %v", i+1, want, list.Items, err)
		}
		if i == 1 {
			err := rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: q.Keys().Events, Values: []any{"event", "lost writes", "kept", 0, "known", time.Now().UnixMilli()}}).Err()
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if out, err := a.Activity.Audit(t.Context(), audit.Options{}); err != nil || len(out.LostWrites) != 1 || out.LostWrites[0].Partition != 2 {
		t.Errorf("%+v %v", out.LostWrites, err)
	}
}
