package instance

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// tower is two instances that listen: b, the newer, leads; a is the monitor.
type tower struct {
	*rig
	a, b member
	seen Seen
	ears map[string]func() // ends listening
}

// listen lets an instance listen to its own channel, as its process does.
func (w *tower) listen(m member) {
	w.Helper()
	sub := w.rdb.Subscribe(w.Context(), w.q.Keys().WakeOf(m.id))
	_, err := sub.Receive(w.Context())
	must(w, err)
	w.ears[m.id] = func() { _ = sub.Close() }
	w.Cleanup(w.ears[m.id])
}

func newTower(t *testing.T, r *rig, changes ...change) *tower {
	t.Helper()
	w := &tower{rig: r, ears: map[string]func(){}}
	w.a = r.up("a", "v1", changes...)
	w.b = r.up("b", "v2", changes...)
	r.open(w.b)
	w.listen(w.a)
	w.listen(w.b)
	if got := w.beat(w.b); got.Monitor || got.Listens != 1 {
		t.Fatalf("the leader: %+v", got)
	}
	if got := w.beat(w.a); !got.Monitor || got.Listens != 1 {
		t.Fatalf("the candidate: %+v", got)
	}
	return w
}

// look looks as a, which has listened for a minute.
func (w *tower) look() Look {
	w.Helper()
	return w.lookAs(w.a, w.b, time.Minute)
}

func (w *tower) lookAs(m, at member, listened time.Duration) Look {
	w.Helper()
	l, err := w.reg.Look(w.Context(), m.id, m.gen, at.gen, DefaultLease, w.seen, listened)
	must(w, err)
	w.seen = l.Seen
	return l
}

// idle lets an instance watch for the next task, as its consumer does.
func (w *tower) idle(m member) {
	w.Helper()
	w.wantClaims(m, 0)
}

// dies lets the process of b die, and looks until it is suspected, or for as long.
func (w *tower) dies(d time.Duration) Look {
	w.Helper()
	w.deaf("b")
	return w.watches(d)
}

// deaf ends the listening of an instance.
func (w *tower) deaf(id string) {
	w.Helper()
	w.ears[id]()
	channel := w.q.Keys().WakeOf(id)
	testredis.Eventually(w, testTimeout, func() bool { return w.rdb.PubSubNumSub(w.Context(), channel).Val()[channel] == 0 }, "nobody listens")
}

// watches looks when the last look says so, for as long, or until the leader is suspected.
func (w *tower) watches(d time.Duration) (l Look) {
	w.Helper()
	for end := time.Now().Add(d); ; {
		l = w.look()
		if l.Suspected || l.Next.IsZero() || time.Now().After(end) {
			return l
		}
		time.Sleep(l.Next.Sub(l.Now))
	}
}

func (w *tower) suspects(id string) string {
	w.Helper()
	return w.rdb.HGet(w.Context(), w.q.Keys().Suspects, id).Val()
}

func towers(t *testing.T, test func(t *testing.T, w *tower), changes ...change) {
	t.Helper()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) { test(t, newTower(t, r, changes...)) })
}
