package instance

import (
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/task"
	"github.com/onbeat/onbeat/testredis"
)

// A record that was damaged while its task ran, or that ran its instance out of memory, does not lie claimed forever:
// the task is dead, where people see it, and the history says what became of its slot.
func TestRecover_aDamagedTaskIsDead(t *testing.T) {
	t.Parallel()
	r := newRig(t, testredis.Real(t))
	dead := r.up("dead", "")
	r.open(dead)
	slot := task.SlotID("nightly", time.UnixMilli(1_700_000_000_000))
	r.add(&task.Task{ID: "plain", Type: lane.Type}, &task.Task{ID: slot, Type: lane.Type})
	r.wantClaims(dead, 2)
	k := r.q.Keys()
	for _, id := range []string{"plain", slot} {
		must(t, r.rdb.HSet(t.Context(), k.Tasks, id, strings.Repeat("\x00", 1000)).Err())
	}
	m, err := New(r.q, r.p, Config{})
	must(t, err)
	leader := r.up("leader", "")
	r.expire(dead, time.Millisecond)
	r.beat(leader)
	if stuck, err := m.recover(t.Context(), dead.gen); err != nil || stuck {
		t.Fatalf("stuck %v, %v", stuck, err)
	}
	if list, err := r.rdb.ZRange(t.Context(), k.Dead, 0, -1).Result(); err != nil || len(list) != 2 {
		t.Errorf("dead: %q, %v, want both", list, err)
	}
	if left, err := r.rdb.ZCard(t.Context(), k.Orphans).Result(); err != nil || left != 0 {
		t.Errorf("%d generations are still to be recovered, %v", left, err)
	}
	notes, err := r.rdb.XRange(t.Context(), k.History, "-", "+").Result()
	must(t, err)
	if len(notes) != 1 || notes[0].Values["runs"] != slot+" dead 0 0" {
		t.Errorf("notes %v, want that the slot is dead", notes)
	}
	if orphans := r.beat(leader).Orphans; len(orphans) != 0 {
		t.Errorf("orphans %v", orphans)
	}
}
