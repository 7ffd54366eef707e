package producer

import (
	"io"
	"sync/atomic"
	"testing"
	"time"

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
