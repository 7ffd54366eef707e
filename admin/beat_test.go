package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// The beat agrees slot by slot with the report of an audit, and says who ran each and who led.
func TestBeat_hasEachSlotAndWhoLed(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		rdb, ns := testredis.Real(t), testredis.Namespace(t)
		var ran atomic.Int64
		instance := func(release string) *onbeat.Dispatcher {
			d, err := onbeat.New(rdb, onbeat.Config{Namespace: ns, Release: release, Drain: 50 * time.Millisecond})
			must(t, err)
			must(t, d.Handle("beat", handlers.Func(func(context.Context, *task.Task) error { ran.Add(1); return nil })))
			return d
		}
		one := instance("v1")
		a, ctx := of(one), t.Context()
		began := time.Now().Add(-time.Minute)
		for _, name := range []string{"a", "b"} {
			_, err := a.Schedules.Apply(ctx, producer.Schedule{Name: name, Rule: schedule.Every(50 * time.Millisecond), Task: "beat"})
			must(t, err)
		}
		for _, d := range []*onbeat.Dispatcher{one, instance("v2")} {
			running, stop := context.WithCancel(ctx)
			ended, enough := make(chan error, 1), ran.Load()+2*30 // of a and b
			go func() { ended <- d.Run(running) }()
			testredis.Eventually(t, patience, func() bool { return ran.Load() >= enough }, "it runs slots")
			stop()
			must(t, <-ended)
		}
		_, err := a.Schedules.Pause(ctx, "a", "")
		must(t, err)
		b, err := a.Activity.Beat(ctx, admin.BeatQuery{From: began, Schedules: []string{"a"}})
		must(t, err)
		roundTrip(t, b)
		if len(b.Schedules) != 1 || b.Schedules[0].Schedule != "a" {
			t.Fatalf("%+v", b.Schedules)
		}
		reports, err := a.Activity.Audit(ctx, audit.Options{Schedule: "a", Since: time.Hour})
		must(t, err)
		counts, releases := map[audit.Verdict]int64{}, map[string]int{}
		for _, s := range b.Schedules[0].Slots {
			counts[s.Fate]++
			releases[s.Release]++
			if (s.Fate == audit.OnTime) != (s.LagMS != nil && *s.LagMS <= 1000 && s.Attempt == 1 && s.Instance != "") {
				t.Errorf("%+v", s)
			}
		}
		if got := counts[audit.OnTime]; got < 20 || got != reports.Schedules[0].Counts[audit.OnTime] || releases["v1"] < 10 || releases["v2"] < 10 {
			t.Errorf("%v of %v: %v", counts, releases, reports.Schedules[0].Counts)
		}
		first := b.Schedules[0].Slots[slices.IndexFunc(b.Schedules[0].Slots, func(s admin.BeatSlot) bool { return s.Fate == audit.OnTime })]
		alone, err := a.Activity.Beat(ctx, admin.BeatQuery{From: first.Slot, To: first.Slot, Schedules: []string{"a"}})
		must(t, err)
		roundTrip(t, alone)
		if list := alone.Schedules[0].Slots; len(list) != 1 || first.Run != nil || list[0].Run == nil || list[0].Run.Outcome != "done" || list[0].Run.Took == "" ||
			list[0].Run.Ended.Before(list[0].Run.Began) || list[0].Run.Began.Before(first.Slot) {
			t.Errorf("a slot alone: %+v", list)
		}
		summed, err := a.Activity.Beat(ctx, admin.BeatQuery{From: began, To: b.To, Schedules: []string{"a"}, Step: 500 * time.Millisecond})
		must(t, err)
		roundTrip(t, summed)
		again := map[audit.Verdict]int64{}
		for _, s := range summed.Schedules[0].Sums {
			for fate, n := range s.Counts {
				again[fate] += n
			}
			if s.At.UnixMilli()%500 != 0 || s.Counts[audit.OnTime] > 0 && s.LagMS == nil {
				t.Errorf("%+v", s)
			}
		}
		if !maps.Equal(counts, again) || len(summed.Schedules[0].Slots) != 0 || len(summed.Terms) != len(b.Terms) {
			t.Errorf("summed up %v of %+v, by themselves %v", again, summed.Schedules[0], counts)
		}
		if len(b.Terms) != 2 || len(b.Sessions) != 2 {
			t.Fatalf("%+v %+v", b.Terms, b.Sessions)
		}
		for i, release := range []string{"v1", "v2"} {
			term, session := b.Terms[i], b.Sessions[i]
			if term.Release != release || session.Release != release || term.Instance != session.Instance || term.Epoch == 0 || session.Lost {
				t.Errorf("%+v %+v", term, session)
			}
			if term.From.Before(session.From) || !term.To.After(term.From) || term.To.After(session.To.Add(time.Second)) {
				t.Errorf("%+v outside of %+v", term, session)
			}
		}
		if b, err = a.Activity.Beat(ctx, admin.BeatQuery{To: began.Add(time.Second), From: began}); err != nil || len(b.Terms) != 0 || len(b.Sessions) != 0 {
			t.Errorf("before all: %+v, %v", b, err)
		}
	})
}

func TestBeat_isBounded(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		rdb := testredis.Real(t)
		ns := testredis.Namespace(t)
		d, err := onbeat.New(rdb, onbeat.Config{Namespace: ns})
		must(t, err)
		a, ctx, now := of(d), t.Context(), time.Now()
		rule, err := json.Marshal(schedule.Every(100 * time.Millisecond)) // which it had for an hour, until now
		must(t, err)
		must(t, rdb.XAdd(ctx, &redis.XAddArgs{
			Stream: "onbeat:{" + ns + "}:history",
			Values: []string{"slots", history.Range("fast", now.Add(-time.Hour), now, history.Was, 0, string(rule))},
		}).Err())
		for name, o := range map[string]admin.BeatQuery{
			"too many slots": {From: now.Add(-time.Hour), To: now},
			"too long":       {From: now.Add(-10 * 366 * 24 * time.Hour), Schedules: []string{"fast"}},
			"no span":        {From: now, To: now.Add(-time.Hour)},
		} {
			var f *task.FieldError
			if _, err := a.Activity.Beat(ctx, o); !errors.As(err, &f) || f.Field != "from" || f.Hint == "" {
				t.Errorf("%s: %v", name, err)
			}
		}
		if b, err := a.Activity.Beat(ctx, admin.BeatQuery{Schedules: []string{"fast", "none"}, From: now}); err != nil || len(b.Schedules) != 1 || !slices.Equal(b.Unknown, []string{"none"}) {
			t.Errorf("of one that never was, and another: %+v, %v", b, err)
		}
		if _, err := a.Activity.Beat(ctx, admin.BeatQuery{Schedules: []string{"none"}, From: now}); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("%v", err)
		}
		summed := admin.BeatQuery{From: now.Add(-time.Hour), To: now, Step: time.Minute}
		b, err := a.Activity.Beat(ctx, summed)
		if err != nil || len(b.Schedules) != 1 || len(b.Schedules[0].Slots) != 0 || len(b.Schedules[0].Sums) != 61 {
			t.Errorf("summed up: %+v, %v", b.Schedules, err)
		}
		summed.Step = time.Second
		var f *task.FieldError
		if _, err = a.Activity.Beat(ctx, summed); !errors.As(err, &f) || f.Field != "step" || f.Hint == "" {
			t.Errorf("3,600 steps: %v", err)
		}
		summed.Step, summed.From = 12*time.Hour, now.Add(-30*24*time.Hour)
		if b, err = a.Activity.Beat(ctx, summed); err != nil || len(b.Schedules[0].Sums) == 0 {
			t.Errorf("30 days: %+v, %v", b.Schedules, err)
		}
		b, err = a.Activity.Beat(ctx, admin.BeatQuery{From: now.Add(-10 * time.Minute)})
		if err != nil || len(b.Schedules) != 1 || len(b.Schedules[0].Slots) < 5990 {
			t.Errorf("%d lines, %v", len(b.Schedules), err)
		}
	})
}

func TestEvents_areReadAPageAtATime(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		a, ctx := of(dispatcher(t, testredis.Client(t))), t.Context()
		for _, name := range []string{"1", "2", "3", "4", "5"} {
			_, err := a.Schedules.Apply(ctx, producer.Schedule{Name: name, Rule: schedule.Every(time.Hour), Task: "bad"})
			must(t, err)
		}
		all, err := a.Activity.Events(ctx, admin.EventQuery{After: "0"})
		if err != nil || len(all.Items) != 5 || all.Next != "" || all.Items[0].Fields["schedule"] != "1" {
			t.Fatalf("%+v, %v", all, err)
		}
		newest, err := a.Activity.Events(ctx, admin.EventQuery{Limit: 2})
		if err != nil || len(newest.Items) != 2 || newest.Items[1].ID != all.Items[4].ID || newest.Next != "" {
			t.Errorf("%+v, %v", newest, err)
		}
		seen := 0
		for o := (admin.EventQuery{After: "0", Limit: 2}); ; {
			page, err := a.Activity.Events(ctx, o)
			must(t, err)
			for _, e := range page.Items {
				if e.ID != all.Items[seen].ID {
					t.Errorf("event %d is %s", seen, e.ID)
				}
				seen++
			}
			if o.After = page.Next; o.After == "" {
				break
			}
		}
		if seen != 5 {
			t.Errorf("%d events", seen)
		}
		if list, err := a.Activity.Events(ctx, admin.EventQuery{After: "0", Since: time.Now().Add(time.Hour)}); err != nil || len(list.Items) != 0 {
			t.Errorf("since later: %+v, %v", list, err)
		}
		if _, err := a.Activity.Events(ctx, admin.EventQuery{After: "x"}); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%v", err)
		}
	})
}
