package producer

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/schedule"
)

// An end that is brought forward, into what a schedule is behind with, ends that too.
func TestBehind_endsAtAnEarlierUntil(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.applied(all("a"))
		tn := w.after(10*time.Minute, nil)
		s := all("a")
		s.Until = tn.entries["a"].last.Anchor.Add(5 * time.Minute)
		w.applied(s)
		must(w, tn.refresh(w.Context()))
		for range 50 {
			must(w, tn.push(w.Context()))
		}
		if e := tn.entries["a"]; e.last.Runs > 302 || e.owed != "" || len(tn.behind) > 0 {
			t.Errorf("%d runs of about 301 slots, and %q is still owed", e.last.Runs, e.owed)
		}
	})
}

// A schedule that has had all its runs, and is behind, has no latest one besides.
func TestBehind_maxRunsEndsOnceToo(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.applied(all("a"))
		tn := w.after(10*time.Minute, nil)
		must(w, tn.push(w.Context()))
		s := all("a")
		s.Missed, s.MaxRuns = schedule.MissedOnce, tn.entries["a"].last.Runs-50
		w.applied(s)
		must(w, tn.refresh(w.Context()))
		before := tn.entries["a"].last.Runs
		w.finish(tn)
		if after := tn.entries["a"].last.Runs; after > before {
			t.Errorf("%d runs, then %d, though max_runs is %d", before, after, s.MaxRuns)
		}
	})
}

// Redis fails while a leader declares again, once all is read, and again while it reads once more: the leader still knows the schedules.
func TestDeclare_againAfterFailuresKnowsAll(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.applied(all("a"))
		tn := w.lead("one", "v1", declare("mine"))
		var sick atomic.Bool
		var declares, reads atomic.Int64 // that failed
		w.rdb.AddHook(between(func(args []any) error {
			switch {
			case !sick.Load():
				return nil
			case len(args) > 3 && args[3] == w.q.Keys().Instances && !w.isAdvance(args): // the right to declare
				declares.Add(1)
			case args[0] == "hscan" && declares.Load() > 0:
				reads.Add(1)
			default:
				return nil
			}
			return io.ErrUnexpectedEOF
		}))
		ctx, stop := context.WithCancel(w.Context())
		ended := make(chan error, 1)
		go func() { ended <- tn.run(ctx) }()
		time.Sleep(10 * time.Second)
		sick.Store(true)
		tn.Redeclare()
		time.Sleep(10 * time.Second)
		stop()
		if err := <-ended; err == nil || declares.Load() != 1 || reads.Load() == 0 {
			t.Fatalf("%v, with %d failures to declare and %d to read", err, declares.Load(), reads.Load())
		}
		if known := tn.known().entries; known["a"] == nil || known["mine"] == nil {
			t.Errorf("it knows %d schedules", len(known))
		}
	})
}

// A leader that may not declare asks whether it may, and reads no schedules for that.
func TestDeclare_aLeaderThatYieldsReadsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		declared := func() []Schedule { return []Schedule{all("a")} }
		older, newer := w.lead("old", "v1", declared), w.lead("new", "v2", declared)
		must(w, newer.takeStock(w.Context()))
		_, _, err := w.reg.StandDown(w.Context(), newer.term, "test", true, true)
		must(w, err)
		v, err := w.reg.Ready(w.Context(), "old", older.term.Gen, instance.DefaultLease)
		must(w, err)
		older.term.Epoch, older.open = v.Epoch, v.Open
		var reads atomic.Int64
		w.rdb.AddHook(between(func(args []any) error {
			if args[0] == "hscan" {
				reads.Add(1)
			}
			return nil
		}))
		ctx, done := context.WithTimeout(w.Context(), 30*time.Second)
		defer done()
		_ = older.run(ctx)
		if n := reads.Load(); n > 6 {
			t.Errorf("it read all schedules %d times in 30 s", n/2)
		}
	})
}
