package producer

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// undoing runs a test on a miniredis in a synctest bubble: time passes when all wait.
func undoing(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) }) // a closed subscription may sleep for a moment
		test(t, worldIn(t, testredis.Mini(t).Client, "ns"))
	})
}

// ticking declares schedules that are due each second.
func ticking(names ...string) func() []Schedule {
	list := []Schedule{}
	for _, name := range names {
		list = append(list, Schedule{Name: name, Rule: schedule.Every(time.Second), Task: "job"})
	}
	return func() []Schedule { return list }
}

// crash lets an instance of a release lead and declare, and never be heard of again; it is lost after its lease.
func (w *world) crash(id, release string, lease time.Duration, declared func() []Schedule) {
	w.Helper()
	ctx := context.Background()
	gen, _, _, err := w.reg.Register(ctx, instance.Config{ID: id, Release: release, Lease: lease}, instance.Past{})
	must(w, err)
	v, err := w.reg.Ready(ctx, id, gen, instance.DefaultLease)
	must(w, err)
	s, err := NewScheduler(w.q.Client(), w.ns, SchedulerConfig{Declared: declared})
	must(w, err)
	tn := &term{
		Scheduler: s, session: &instance.Session{Release: release}, open: true,
		term: queue.Term{Instance: id, Gen: gen, Epoch: v.Epoch},
	}
	must(w, tn.takeStock(ctx))
}

func (w *world) wants(when, list string) {
	w.Helper()
	if got := w.stored(); got != list {
		w.Fatalf("%s the schedules are %q, want %q", when, got, list)
	}
}

// had is a schedule's grid and runs.
func (w *world) had(name string) Status {
	w.Helper()
	s, err := w.Get(context.Background(), name)
	must(w, err)
	return s
}

func TestDeclare_aRolloutThatIsUndoneBringsBackWhatItRetired(t *testing.T) {
	t.Parallel()
	undoing(t, func(t *testing.T, w *world) {
		two := w.start("v2", ticking("billing", "keepme", "stopped"))
		w.leads(two)
		_, err := w.Pause(t.Context(), "stopped", "")
		must(t, err)
		time.Sleep(10*time.Second + 300*time.Millisecond)
		billing, stopped := w.had("billing"), w.had("stopped")

		three := w.start("v3", ticking("brandnew", "keepme"))
		w.leads(three)
		time.Sleep(5 * time.Second)
		w.wants("while v3 leads", "brandnew keepme")
		three.stop()
		time.Sleep(2 * time.Second)
		w.wants("after v3 left", "billing keepme stopped")
		now := w.had("billing")
		if !now.Anchor.Equal(billing.Anchor) || now.Runs < billing.Runs || now.Runs > billing.Runs+4 || now.Release != "v2" {
			t.Errorf("billing came back as %+v, was %+v", now, billing)
		}
		if s := w.had("stopped"); !s.Paused || !s.Anchor.Equal(stopped.Anchor) {
			t.Errorf("stopped came back as %+v, was %+v", s, stopped)
		}
		if _, noted := w.account("billing"); noted < 4 || noted > 6 {
			t.Errorf("%d slots of billing are noted, of the five seconds that it was retired", noted)
		}
		for _, n := range w.notes("billing") {
			if n.Word != "retired" {
				t.Errorf("noted %+v", n)
			}
		}
		_, err = w.Resume(t.Context(), "stopped")
		must(t, err)
		w.account("stopped")
		events, err := w.q.Events(t.Context(), time.Time{}, 1000)
		must(t, err)
		seen := map[string]string{}
		for _, e := range events {
			seen[e.Kind+" "+e.Fields["schedule"]] = e.Fields["release"]
		}
		if by, ok := seen["schedule retired billing"]; !ok || by != "v3" {
			t.Errorf("billing was retired by %q, %v", by, ok)
		}
		if by, ok := seen["declares again "]; !ok || by != "v2" {
			t.Errorf("declares again: %q, %v", by, ok)
		}
		if _, ok := seen["schedule restored billing"]; !ok {
			t.Error("no event says that billing came back")
		}
	})
}

// Entries that a newer release left behind do not keep an older leader from declaring anew.
func TestDeclare_again_afterTheNewerLeft(t *testing.T) {
	t.Parallel()
	undoing(t, func(t *testing.T, w *world) {
		var now atomic.Pointer[func() []Schedule]
		says := func(names ...string) {
			f := ticking(names...)
			now.Store(&f)
		}
		says("billing")
		two := w.start("v2", func() []Schedule { return (*now.Load())() })
		w.leads(two)
		three := w.start("v3", ticking("brandnew"))
		w.leads(three)
		says("billing", "more")
		two.redeclare() // v2 has no say now
		time.Sleep(time.Second)
		w.wants("v3 leads:", "brandnew")
		three.stop()
		time.Sleep(time.Second)
		w.wants("v3 left:", "billing more")
		says("less")
		two.redeclare()
		time.Sleep(time.Second)
		w.wants("told otherwise:", "less")
	})
}

// A person has the leader read its schedules again, though a newer instance of its release declared and is present. A request
// from before it led says nothing about what that one declared since.
func TestRedeclare_byAnOlderInstanceThatLeads(t *testing.T) {
	t.Parallel()
	undoing(t, func(t *testing.T, w *world) {
		older := w.start("v1", ticking("changed"))
		w.leads(older)
		newer := w.start("v1", ticking("stored"))
		w.leads(newer)
		older.redeclare()
		_, err := w.reg.AskToResign(t.Context(), newer.id, "")
		must(t, err)
		w.leads(older)
		time.Sleep(5 * time.Second)
		w.wants("nobody asked:", "stored")
		older.redeclare()
		time.Sleep(time.Second)
		w.wants("a person asked:", "changed")
	})
}

// Scheduling that begins again in the same term keeps the request of a person; a new term does not.
func TestRedeclare_holdsForTheTerm(t *testing.T) {
	t.Parallel()
	s := newWorld(t, testredis.Client(t)).lead("one", "v1", nil).Scheduler
	one, two := queue.Term{Instance: "one", Gen: 1, Epoch: 1}, queue.Term{Instance: "one", Gen: 1, Epoch: 2}
	s.begin(one)
	for want, led := range map[int]queue.Term{1: one, 0: two} {
		s.begin(one)
		s.insists = true
		s.Redeclare()
		if s.begin(led); len(s.redeclare) != want || s.insists != (want == 1) {
			t.Errorf("%+v: %d requests wait, insists: %v", led, len(s.redeclare), s.insists)
		}
	}
}

// A retired schedule is not kept any more if a client deletes its successor, or makes a schedule of its name by hand.
func TestDeclare_whatWasDeletedByHandIsNotKept(t *testing.T) {
	t.Parallel()
	undoing(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		two := w.start("v2", ticking("billing", "keepme"))
		w.leads(two)
		time.Sleep(2 * time.Second)
		anchor := w.had("billing").Anchor
		three := w.start("v3", ticking("keepme"))
		w.leads(three)
		time.Sleep(time.Second)
		if s, err := w.Retired(ctx, "billing"); err != nil || s.Retired.Release != "v3" || s.Release != "v2" || !s.Anchor.Equal(anchor) {
			t.Errorf("billing was %+v, %v", s, err)
		}
		w.apply("billing", schedule.Every(time.Hour))
		if _, err := w.Retired(ctx, "billing"); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("it is kept though there is another: %v", err)
		}
		must(t, w.Delete(ctx, "billing"))
		must(t, w.Delete(ctx, "keepme"))
		if _, err := w.Retired(ctx, "keepme"); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("what was deleted by hand is kept: %v", err)
		}
		three.stop()
		time.Sleep(time.Second)
		w.wants("v3 left:", "billing keepme")
		if s := w.had("billing"); s.Anchor.Equal(anchor) || s.Runs > 5 {
			t.Errorf("billing is %+v, and was to be a new one", s)
		}
	})
}

func TestDeclare_whatWasRetiredAMonthAgoBeginsAnew(t *testing.T) {
	t.Parallel()
	undoing(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		one := w.lead("one", "v1", declare("billing"))
		must(t, one.takeStock(ctx))
		must(t, w.lead("two", "v2", declare()).takeStock(ctx))
		tidy := func(want int64) {
			t.Helper()
			_, err := w.q.Tidy(ctx, 5*time.Second)
			must(t, err)
			k := w.q.Keys()
			if n, m := w.rdb.HLen(ctx, k.Retired).Val(), w.rdb.ZCard(ctx, k.Retirements).Val(); n != want || m != want {
				t.Errorf("%d and %d retired schedules are kept, want %d", n, m, want)
			}
		}
		tidy(1)
		time.Sleep(queue.RetiredKept - time.Hour)
		tidy(1)
		time.Sleep(2 * time.Hour)
		tidy(0)
	})
}

func TestDeclare_aNewerGenerationThatIsGoneIsUndone(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"", "v1"} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			undoing(t, func(t *testing.T, w *world) {
				one := w.start(release, ticking("billing"))
				w.leads(one)
				time.Sleep(3 * time.Second)
				billing := w.had("billing")
				two := w.start(release, ticking("other"))
				w.leads(two)
				time.Sleep(time.Second)
				w.wants("the newer leads:", "other")
				two.stop()
				time.Sleep(time.Second)
				w.wants("the newer left:", "billing")
				w.crash("three", release, 5*time.Second, ticking("other"))
				time.Sleep(60 * time.Second)
				w.wants("55 s after the next was lost", "other")
				time.Sleep(7 * time.Second)
				w.wants("62 s after the next was lost", "billing")
				if now := w.had("billing"); !now.Anchor.Equal(billing.Anchor) {
					t.Errorf("billing came back as %+v, was %+v", now, billing)
				}
				w.account("billing")
			})
		})
	}
}
