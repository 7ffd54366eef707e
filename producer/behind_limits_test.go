package producer

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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

// watched counts commands, and fails the first of a name.
type watched struct {
	mu     sync.Mutex
	counts map[string]int
	fails  string
}

func watch(fails string) *watched { return &watched{counts: map[string]int{}, fails: fails} }

// counted returns how many commands of a name there were.
func (h *watched) counted(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counts[name]
}

// count counts a command, and says whether it is the one to fail.
func (h *watched) count(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[name]++
	if name != h.fails {
		return false
	}
	h.fails = ""
	return true
}

func (h *watched) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *watched) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.count(cmd.Name()) {
			cmd.SetErr(io.ErrUnexpectedEOF)
			return io.ErrUnexpectedEOF
		}
		return next(ctx, cmd)
	}
}

func (h *watched) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A leader still knows the schedules after a read that fails while it declares again.
func TestDeclare_againAfterAFailedReadKnowsAll(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.applied(all("a"))
		tn := w.after(time.Second, nil)
		must(w, tn.push(w.Context()))
		w.rdb.AddHook(watch("zrangebyscore"))
		must(w, tn.insist(w.Context(), tn.declaring()))
		if !tn.whole || len(tn.known().entries) != 1 {
			t.Errorf("whole: %v, and it knows %d schedules", tn.whole, len(tn.known().entries))
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
		h := watch("")
		w.rdb.AddHook(h)
		ctx, done := context.WithTimeout(w.Context(), 30*time.Second)
		defer done()
		_ = older.run(ctx)
		if n := h.counted("hscan"); n > 6 {
			t.Errorf("it read all schedules %d times in 30 s", n/2)
		}
	})
}
