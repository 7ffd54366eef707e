package producer

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
)

// Redis comes back empty without an archive. A leader that remembers what was applied restores it. One that remembers nothing, because
// another one led until then, says once that it is gone.
func TestRegain_saysWhatIsGoneWithoutAnArchive(t *testing.T) {
	inBubble(t, func(t *testing.T, mini *testredis.Miniredis, w *world) {
		lost := func() (n int) {
			list, err := w.q.Events(t.Context(), time.Time{}, 1000)
			must(t, err)
			for _, e := range list {
				if e.Kind == "schedules lost" {
					n++
				}
			}
			return n
		}
		w.apply("hand", schedule.Every(time.Minute))
		n := w.start("v1", declare("mine"))
		w.leads(n)
		time.Sleep(10 * time.Second)
		mini.FlushAll()
		time.Sleep(10 * time.Second)
		w.entry("hand")
		if lost() != 0 {
			t.Error("it says that schedules are gone, which it has restored")
		}

		rdb := mini.Dialed(t)
		var gone atomic.Bool
		rdb.AddHook(between(func([]any) error {
			if gone.Load() {
				return io.EOF
			}
			return nil
		}))
		leader := w.startOver(rdb, "v2", declare("mine"))
		w.leads(leader)
		time.Sleep(10 * time.Second)
		gone.Store(true)
		mini.FlushAll()
		time.Sleep(10 * time.Second)
		w.leads(n)
		if st, err := w.q.Schedule(t.Context(), "hand"); err != nil || !st.Absent() {
			t.Fatalf("%+v, %v: nobody is left who knows it", st, err)
		}
		if lost() != 1 {
			t.Errorf("it says %d times that schedules are gone", lost())
		}
		n.stop()
		w.leads(w.start("v1", declare("mine")))
		time.Sleep(10 * time.Second)
		if lost() != 1 {
			t.Error("the next leader says it again")
		}
		if state, err := w.q.Regained(t.Context()); err != nil || state != queue.FromNothing {
			t.Errorf("%q, %v", state, err)
		}
		leader.stop()
	})
}

// kept is an archive of schedules.
type kept struct {
	archive.Archive
	list []archive.Schedule
}

func (k *kept) Validate() error { return nil }
func (k *kept) String() string  { return "kept" }

func (k *kept) Open(context.Context, string, zerolog.Logger) (archive.Archive, error) { return k, nil }

func (k *kept) HistoryBefore(context.Context, string, string, func(archive.Entry) bool) error {
	return nil
}

func (k *kept) Schedules(_ context.Context, after string, _ int) ([]archive.Schedule, error) {
	if after != "" {
		return nil, nil
	}
	return k.list, nil
}

// Redis came back empty, and somebody applies a schedule before the first leader comes: the declared ones come back all the same.
func TestRegain_alsoIfSomebodyAppliedAScheduleBefore(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		must(t, w.lead("one", "v1", declare("mine")).takeStock(ctx))
		was, err := w.q.Schedule(ctx, "mine")
		must(t, err)
		anchor := w.entry("mine").last.Anchor
		time.Sleep(10 * time.Minute)
		w.forget()
		w.apply("hand", schedule.Every(time.Hour))
		tn := w.lead("two", "v1", declare("mine"))
		tn.cfg.Archive, err = archive.NewSource(&kept{list: []archive.Schedule{{Name: "mine", Definition: was.Definition, Last: was.Last}}}, w.ns, zerolog.Nop())
		must(t, err)
		must(t, tn.regainDeclared(ctx))
		must(t, tn.takeStock(ctx))
		w.wantAnchor("mine", anchor)
	})
}

// A declared schedule whose row cannot be read begins anew, and the leader says so before. Others may still be restored.
func TestRegain_saysWhichDeclaredSchedulesBeginAnew(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		tn := w.lead("one", "v1", declare("mine"))
		var err error
		rows := []archive.Schedule{{Name: "hand", Definition: "damaged", Last: "1"}, {Name: "mine", Definition: "damaged", Last: "1"}}
		tn.cfg.Archive, err = archive.NewSource(&kept{list: rows}, w.ns, zerolog.Nop())
		must(t, err)
		full := true // only work behind the gate makes room
		w.rdb.AddHook(between(func(args []any) error {
			if name := fmt.Sprint(args[0]); full && (name == "xadd" || name == "hset" && fmt.Sprint(args[2]) == "regained") {
				return refusal("OOM command not allowed when used memory > 'maxmemory'.")
			}
			return nil
		}))
		must(t, tn.regainDeclared(ctx))
		full = false
		must(t, tn.regainDeclared(ctx))
		list, err := w.q.Events(ctx, time.Time{}, 1000)
		must(t, err)
		var lost []map[string]string
		for _, e := range list {
			if e.Kind == "schedules lost" {
				lost = append(lost, e.Fields)
			}
		}
		if len(lost) != 1 || lost[0]["schedules"] != "1" || !strings.Contains(lost[0]["error"], "mine") {
			t.Errorf("%v", lost)
		}
		must(t, tn.takeStock(ctx))
		w.entry("mine")
	})
}

// How a schedule was is noted once, however often leaders take it from the archive.
func TestRegain_notesHowAScheduleWasOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply("s", schedule.Every(time.Hour))
		tn, now := w.lead("one", "v1", nil), w.now().Truncate(time.Millisecond)
		before := map[string]*Health{"s": {Failed: 2, Missed: 3, Skipped: 4, Troubled: now.Add(-time.Hour), Noted: now.Add(-time.Minute)}}
		must(t, tn.noteHealths(ctx, before))
		w.note(now.Add(time.Second), "s@1000 failed 1 1000")
		_, _, err := w.noteHealth(ctx, tn.term, nil, &trends{}, deaf{})
		must(t, err)
		for range 2 {
			must(t, tn.noteHealths(ctx, before))
			list, _, err := w.Healths(ctx, []string{"s"})
			must(t, err)
			if h := list["s"]; h.Failed != 3 || h.Missed != 3 || h.Skipped != 0 || !h.Troubled.Equal(now.Add(-time.Hour)) {
				t.Fatalf("%+v", h)
			}
		}
	})
}
