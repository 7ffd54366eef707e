package admin_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// everyField is a schedule whose every field is set, as far as they go together.
var everyField = producer.Schedule{
	Name: "s", Task: "t", Payload: []byte(`{"a":1}`), Secret: []string{"a"}, Heartbeat: &producer.Heartbeat{URL: "https://x.example/u", Start: "https://x.example/s", Fail: "https://x.example/f"}, Queue: "q", Priority: task.High, Timeout: 90 * time.Second, MaxAttempts: 4,
	Backoff: task.Backoff{Base: time.Second, Cap: time.Hour},
	Rule: schedule.Rule{
		Every: 36 * time.Hour, Cron: "0 2 * * *", Timezone: "Asia/Seoul", DST: schedule.DST{Gap: schedule.DSTGapSkip, Overlap: schedule.DSTOverlapBoth},
		Start: "2030-01-01T00:00:00Z", Until: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), MaxRuns: 7, Jitter: time.Minute,
		Missed: schedule.MissedAll, CatchUp: 2 * time.Hour, Overlap: schedule.OverlapQueue,
	},
}

// A field that is added to a schedule or a rule, and forgotten in their lists of fields, fails this test.
func TestSchedules_keepEveryField(t *testing.T) {
	t.Parallel()
	for _, v := range []any{everyField, everyField.Rule} {
		for i := range reflect.ValueOf(v).NumField() {
			if f := reflect.TypeOf(v).Field(i); f.IsExported() && f.Name != "Elsewhere" && reflect.ValueOf(v).Field(i).IsZero() {
				t.Errorf("%s of %T is not set", reflect.TypeOf(v).Field(i).Name, v)
			}
		}
	}
	whole := admin.ScheduleDetail{Schedule: admin.Schedule{Schedule: everyField, ScheduleState: admin.ScheduleState{Runs: 3}}, Around: admin.Around{Upcoming: []admin.Slot{{}}}}
	if got := roundTrip(t, whole); !reflect.DeepEqual(got, whole) {
		t.Errorf("%+v\nbecomes\n%+v", whole, got)
	}
	ways(t, func(t *testing.T, of way) {
		a, ctx, want := of(dispatcher(t, testredis.Real(t))), t.Context(), everyField
		want.Cron, want.Timezone, want.DST = "", "", schedule.DST{} // they exclude Every
		if plan, err := a.Schedules.Plan(ctx, want); err != nil || plan.Result != "would make" {
			t.Fatal(plan, err)
		}
		_, err := a.Schedules.Apply(ctx, want)
		must(t, err)
		got, err := a.Schedules.Get(ctx, want.Name)
		must(t, err)
		if got := roundTrip(t, got).Schedule.Schedule; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nbecomes\n%+v", want, got)
		}
		page, err := a.Schedules.Revisions(ctx, want.Name, 1, "")
		must(t, err)
		if got := roundTrip(t, page).Items[0].Definition; !reflect.DeepEqual(*got, want) {
			t.Errorf("%+v\nis the revision\n%+v", want, got)
		}
		if plan, err := a.Schedules.Plan(ctx, got.Schedule.Schedule); err != nil || plan.Result != "unchanged" {
			t.Error(plan, err)
		}
	})
}

func TestSchedules_fromMadeToDeleted(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		d := dispatcher(t, testredis.Real(t))
		a, ctx := of(d), admin.By(t.Context(), "ann@host")
		s := producer.Schedule{Name: "s", Rule: schedule.Every(50 * time.Millisecond), Task: "bad", MaxAttempts: 1}
		plan, err := a.Schedules.Plan(ctx, s)
		if err != nil || plan.Result != "would make" {
			t.Errorf("%+v, %v", plan, err)
		}
		if did, err := a.Schedules.Apply(ctx, s); err != nil || did.Result != "made" {
			t.Errorf("%+v, %v", did, err)
		}
		run(t, d)
		testredis.Eventually(t, patience, func() bool {
			got, err := a.Schedules.Get(ctx, "s")
			return err == nil && got.Latest != nil && got.Latest.Failures > 2
		}, "it has failed three times")
		got, err := a.Schedules.Get(ctx, "s")
		must(t, err)
		got = roundTrip(t, got)
		if got.Origin != producer.Applied || got.Every != 50*time.Millisecond || len(got.Upcoming) != 5 || len(got.RecentRuns) == 0 ||
			got.RecentRuns[0].Outcome != history.Dead || got.RecentRuns[0].Error != "it is bad" || got.RecentRuns[0].Release != "v1" {
			t.Errorf("%+v", got)
		}
		if slots, err := a.Schedules.Slots(ctx, "s", time.Time{}, 3); err != nil || len(slots.Slots) != 3 || slots.Rule != "every 50ms" {
			t.Errorf("%+v, %v", slots, err)
		}
		verdict, err := a.Activity.Audit(ctx, audit.Options{})
		if err != nil || len(verdict.Schedules) != 1 || verdict.OK() || !slices.ContainsFunc(verdict.Schedules[0].Trouble, func(x audit.Trouble) bool { return x.Kind == string(admin.Failing) }) {
			t.Errorf("a job that fails each time: %+v, %v", verdict, err)
		}

		s.Every = time.Hour
		if plan, err := a.Schedules.Plan(ctx, s); err != nil || plan.Result != "would change" || len(plan.Changes) != 1 || plan.Changes[0].Field != "every" || plan.Declared {
			t.Errorf("%+v, %v", plan, err)
		}
		if did, err := a.Schedules.Apply(ctx, s); err != nil || did.Result != "changed" || did.Declared {
			t.Errorf("%+v, %v", did, err)
		}
		pause := func() (bool, error) { return a.Schedules.Pause(ctx, "s", "") }
		for _, call := range []struct {
			what string
			do   func() (bool, error)
			want bool
		}{{"pause", pause, true}, {"pause again", pause, false}, {"resume", func() (bool, error) { return a.Schedules.Resume(ctx, "s") }, true}} {
			if did, err := call.do(); err != nil || did != call.want {
				t.Errorf("%s: %v, %v", call.what, did, err)
			}
		}
		id, err := a.Schedules.Trigger(ctx, "s", nil)
		must(t, err)
		await(t, a, id, admin.TaskDead)
		span := producer.Backfilling{From: time.Now().Add(-3 * time.Hour), To: time.Now().Add(-time.Minute), DryRun: true}
		if b, err := a.Schedules.Backfill(ctx, "s", span); err != nil || b.Slots < 2 || b.Added != b.Slots || !b.DryRun {
			t.Errorf("a dry run: %+v, %v", b, err)
		}
		if b, err := a.Schedules.Backfill(ctx, "s", producer.Backfilling{From: time.Now().Add(-3 * time.Hour), To: time.Now().Add(-time.Minute)}); err != nil || b.Slots < 2 || b.Added != b.Slots {
			t.Errorf("%+v, %v", b, err)
		}
		if was, err := a.Schedules.Delete(ctx, "s"); err != nil || was.Name != "s" || was.Every != time.Hour {
			t.Errorf("%+v, %v", was, err)
		}
		if _, err := a.Schedules.Get(ctx, "s"); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("%v", err)
		}
		if runs, err := a.Schedules.Runs(ctx, "", 1000, ""); err != nil || len(runs.Items) < 4 {
			t.Errorf("%d runs, %v", len(runs.Items), err)
		}
		if _, err := a.Schedules.Runs(ctx, "s", 1, "x"); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%v", err)
		}
		events, err := a.Activity.Events(ctx, admin.EventQuery{})
		must(t, err)
		who := "ann@host"
		if strings.HasSuffix(t.Name(), "/http") {
			who = "local" // the API says who it was, not the caller
		}
		by := map[string]string{}
		for _, e := range events.Items {
			by[e.Event] = e.Fields["by"]
		}
		if by["schedule triggered"] != who || by["backfill"] != who {
			t.Errorf("%v", by)
		}
	})
}

// A schedule that a release declares is said to come back when somebody changes or deletes it.
func TestSchedules_ofARelease(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		d := dispatcher(t, testredis.Client(t))
		a, ctx := of(d), t.Context()
		s := producer.Schedule{Name: "s", Rule: schedule.Every(time.Hour), Task: "bad"}
		must(t, d.Declare([]producer.Schedule{s}))
		run(t, d)
		testredis.Eventually(t, patience, func() bool { _, err := a.Schedules.Get(ctx, "s"); return err == nil }, "it is declared")
		s.Every = 2 * time.Hour
		for name, call := range map[string]func() (admin.Plan, error){
			"would change": func() (admin.Plan, error) { return a.Schedules.Plan(ctx, s) },
			"changed":      func() (admin.Plan, error) { return a.Schedules.Apply(ctx, s) },
		} {
			if plan, err := call(); err != nil || plan.Result != name && plan.Result != "unchanged" || plan.Result == name && (!plan.Declared || plan.DeclaredBy != "v1") {
				t.Errorf("%+v, %v", plan, err)
			}
		}
		if was, err := a.Schedules.Delete(ctx, "s"); err != nil || was.Origin != producer.Declared || was.Release != "v1" {
			t.Errorf("%+v, %v", was, err)
		}
	})
}

func TestInstances_sayWhoLeadsAndWhetherTheyMayWork(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		rdb := testredis.Real(t)
		d := dispatcher(t, rdb)
		a, ctx := of(d), t.Context()
		list, err := a.Instances.List(ctx)
		if err != nil || len(list.Items) != 0 || list.Leader() != nil || !list.LeaderlessSince.IsZero() || list.Now.IsZero() {
			t.Errorf("%+v, %v", list, err)
		}
		if _, err := a.Instances.Promote(ctx, "v1"); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("%v", err)
		}
		running, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(running) }()
		testredis.Eventually(t, patience, func() bool {
			list, err = a.Instances.List(ctx)
			return err == nil && list.Leader() != nil
		}, "it leads")
		if x := roundTrip(t, list).Items[0]; x.Release != "v1" || x.State != "ready" || x.LeaseLeft() <= 0 || x.Host == "" || strings.Join(x.Types, " ") != "bad long "+task.BulkType+" "+notify.HeartbeatType {
			t.Errorf("%+v", x)
		}
		if p, err := a.Instances.Promote(ctx, "v1"); err != nil || !p.Leads || p.Leader != list.Items[0].ID {
			t.Errorf("%+v, %v", p, err)
		}
		p, err := a.Instances.Pause(ctx, time.Minute, "failover")
		must(t, err)
		if list, err = a.Instances.List(ctx); err != nil || !list.PausedUntil.Equal(p.Until) || list.PauseReason != "failover" {
			t.Errorf("paused until %v because of %q, not %v, %v", list.PausedUntil, list.PauseReason, p.Until, err)
		}
		must(t, a.Instances.Resume(ctx))
		if list, err = a.Instances.List(ctx); err != nil || !list.PausedUntil.IsZero() || list.PauseReason != "" {
			t.Errorf("%+v, %v", list, err)
		}
		stop()
		must(t, <-ended)
		if list, err = a.Instances.List(ctx); err != nil || len(list.Items) != 0 || list.LeaderlessSince.IsZero() {
			t.Errorf("after the last one left: %+v, %v", list, err)
		}
	})
}

func TestActivity_followsFromAPlace(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		a := of(dispatcher(t, testredis.Client(t)))
		ctx := t.Context()
		for _, name := range []string{"one", "two"} {
			_, err := a.Schedules.Apply(ctx, producer.Schedule{Name: name, Rule: schedule.Every(time.Hour), Task: "bad"})
			must(t, err)
		}
		list, err := a.Activity.Events(ctx, admin.EventQuery{})
		if err != nil || len(list.Items) != 2 {
			t.Fatalf("%+v, %v", list, err)
		}
		roundTrip(t, list)
		stop := errors.New("stop")
		err = a.Activity.Follow(ctx, list.Items[0].ID, func(e admin.Event) error {
			if e.ID != list.Items[1].ID || e.Fields["schedule"] != "two" {
				t.Errorf("%+v", e)
			}
			return stop
		})
		if !errors.Is(err, stop) {
			t.Errorf("%v", err)
		}
		if err := a.Activity.Follow(ctx, "no place", nil); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%v", err)
		}
	})
}

func TestInstanceList_handlesWhatMayBeTaken(t *testing.T) {
	t.Parallel()
	lead := admin.Instance{ID: "v2", Leader: true, State: "ready", Order: 2, LeaseLeftMS: 1, Types: []string{"http"}, Consume: "newest"}
	old := admin.Instance{ID: "v1", State: "ready", Order: 1, LeaseLeftMS: 1, Types: []string{"exec", "http"}}
	for _, c := range []struct {
		consume  string
		oldOrder int64
		oldState string
		want     bool
	}{{"newest", 1, "ready", false}, {"release", 1, "ready", false}, {"release", 2, "ready", true}, {"all", 1, "ready", true}, {"all", 1, "draining", false}} {
		l := admin.InstanceList{Items: []admin.Instance{lead, old}}
		l.Items[0].Consume, l.Items[1].Order, l.Items[1].State = instance.Consume(c.consume), c.oldOrder, c.oldState
		if got := l.Handles("default", "exec"); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		if !l.Handles("default", "http") {
			t.Errorf("%+v: the leader handles http", c)
		}
	}
	l := admin.InstanceList{Items: []admin.Instance{lead}}
	l.Items[0].Queues = []string{"fast"}
	if l.Handles("slow", "http") || !l.Handles("fast", "http") {
		t.Error("an instance that reads the queue fast takes from that alone")
	}
	if (&admin.InstanceList{Items: []admin.Instance{old}}).Handles("default", "exec") != true {
		t.Error("while none leads, each that is there counts")
	}
}

// No schedule is taken for well while nobody has noted how its runs went.
func TestSchedules_sayWhichRunsAreNotKnown(t *testing.T) {
	t.Parallel()
	for partitions := range 2 {
		rdb, ns := testredis.Client(t), testredis.Namespace(t)
		direct, _ := partsOn(t, ns, slices.Repeat([]redis.UniversalClient{rdb}, partitions+1)...)
		_, err := direct.Schedules.Apply(t.Context(), producer.Schedule{Name: "s", Rule: schedule.Every(time.Hour), Task: "job"})
		must(t, err)
		many := strings.Repeat("other@1000 done 1 1000\n", 10_000) + "other@1000 done 1 1000"
		for p := range partitions + 1 {
			for i, runs := range []string{many, many, "s@1000 dead 1 1000"} {
				must(t, rdb.XAdd(t.Context(), &redis.XAddArgs{
					Stream: queue.Partition{Namespace: ns, Number: p + 1}.Keys().History, ID: fmt.Sprintf("%d-1", 1_000*(i+1)), Values: []any{"runs", runs},
				}).Err())
			}
		}
		for way, a := range map[string]*admin.Admin{"direct": direct, "http": served(t, direct)} {
			list, err := a.Schedules.List(t.Context())
			must(t, err)
			one, err := a.Schedules.Get(t.Context(), "s")
			must(t, err)
			if len(list.CouldNotAsk) != 1 || len(list.Items) != 1 || !strings.Contains(list.Items[0].Why, list.CouldNotAsk[0].Source) || one.Why != list.Items[0].Why {
				t.Errorf("%d, %s: %+v, %+v, %+v", partitions+1, way, list.CouldNotAsk, list.Items, one.Condition)
			}
		}
	}
}
