package instance

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
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
	m, err := New(r.q.Client(), r.p.Namespace, Config{})
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

// Each instance that joins, leaves or leads reads the entries of releases and declarers. A damaged entry stops no instance.
func TestRegistry_damagedNotesStopNobody(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "-1 -1", "1 x", "1 99999999999999999", "9 1 1", strings.Repeat("\x00", 1000)} {
		t.Run(strings.ToValidUTF8(text[:min(len(text), 20)], "?"), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, testredis.Real(t))
			ctx, k := t.Context(), r.q.Keys()
			old := r.up("old", "v1")
			for _, key := range []string{k.Declarers, k.Strikes, k.Releases} {
				must(t, r.rdb.HSet(ctx, key, "v1", text, "v2", text, "1", text, "2", text, "x", text).Err())
			}
			must(t, r.rdb.HSet(ctx, k.Meta, "declared", text, "clock", text).Err())
			r.expire(old, time.Millisecond)
			m := r.join("new", "v2")
			// By the damaged entry its release may have strikes. Then it leads all the same, because there is no other instance.
			r.ready(m)
			r.beat(m)
			r.open(m)
			r.wantLeader("new")
			if may, again, err := r.reg.Declare(ctx, r.term(m)); err != nil || !may && again > time.Second {
				t.Errorf("it may declare: %v, else again in %v (%v)", may, again, err)
			}
			r.resign(m)
			r.leave(m)
		})
	}
}

// If an instance's entry is damaged behind its generation, the instance learns that with its next call and registers anew,
// and its tasks are taken back. Otherwise no instance could lead until its lease ends, because each election would meet the
// entry.
func TestRegistry_aDamagedEntryIsRegisteredAnew(t *testing.T) {
	t.Parallel()
	for _, rest := range []string{"", " ", " x", " 1 r", " 1 r 0 newest", "\x00", " 1 r 0 1 1 1", "gone"} {
		t.Run(strings.ReplaceAll(rest, "\x00", "zero"), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, testredis.Real(t))
			k := r.q.Keys()
			m := r.up("m", "v1")
			r.open(m)
			r.add(&task.Task{ID: "held", Type: lane.Type})
			r.wantClaims(m, 1)
			must(t, r.rdb.HSet(t.Context(), k.Members, "m", strconv.FormatInt(m.gen, 10)+rest).Err())
			if rest == "gone" {
				must(t, r.rdb.HDel(t.Context(), k.Members, "m").Err())
			}
			for what, call := range map[string]func() error{
				"heartbeat": func() error {
					_, err := r.reg.Heartbeat(t.Context(), "m", m.gen, time.Minute, time.Time{}, "")
					return err
				},
				"ready":     func() error { _, err := r.reg.Ready(t.Context(), "m", m.gen, DefaultLease); return err },
				"open":      func() error { _, err := r.reg.Open(t.Context(), r.term(m)); return err },
				"standdown": func() error { _, _, err := r.reg.StandDown(t.Context(), r.term(m), "", true, true); return err },
				"advance":   func() error { _, _, _, err := r.q.Advance(t.Context(), r.term(m), make([]queue.Step, 1)); return err },
			} {
				if err := call(); !errors.Is(err, queue.ErrFenced) {
					t.Errorf("%s: %v, want that it is fenced", what, err)
				}
			}
			gen, _, _, err := r.reg.Register(t.Context(), Config{ID: "m", Release: "v1", Lease: time.Minute}, Past{Gen: m.gen})
			must(t, err)
			lost, err := r.reg.Orphans(t.Context())
			must(t, err)
			if gen <= m.gen || !slices.Contains(lost, m.gen) {
				t.Errorf("generation %d after %d, lost %v", gen, m.gen, lost)
			}
			_, err = r.reg.Ready(t.Context(), "m", gen, DefaultLease)
			must(t, err)
			r.wantLeader("m")
		})
	}
}

// If the leader's entry names an ID that is no instance, that ID does not lead, with any lease: the instances elect.
func TestRegistry_aLeaderThatIsNoInstance(t *testing.T) {
	t.Parallel()
	for _, entry := range [][2]string{
		{"", ""}, {"", "x"}, {"", "0"}, {"", "-1"}, {"x", "x"}, {"x", "0"}, {"1 1 r 0 newest newest v1", ""}, {"1 1 r 0 newest newest v1", "x"},
		{"1 8999999999999999 r 0 newest newest v1", "0"},
	} {
		member, gen := entry[0], entry[1]
		t.Run(member+", "+gen, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, testredis.Real(t))
			k := r.q.Keys()
			m := r.up("m", "v1")
			r.open(m)
			must(t, r.rdb.ZAdd(t.Context(), k.Instances, redis.Z{Score: 1e16, Member: "nobody"}).Err())
			if member != "" {
				must(t, r.rdb.HSet(t.Context(), k.Members, "nobody", member).Err())
			}
			must(t, r.rdb.HSet(t.Context(), k.Leader, "id", "nobody").Err())
			if gen != "" {
				must(t, r.rdb.HSet(t.Context(), k.Leader, "gen", gen).Err())
			}
			r.beat(m)
			r.wantLeader("m")
			must(t, r.rdb.ZAdd(t.Context(), k.Instances, redis.Z{Score: 1, Member: "somebody"}).Err()) // found lost: they elect
			r.beat(m)
			r.wantLeader("m")
		})
	}
}

// A leader's entry that is damaged is no error of a look: the leader's next heartbeat elects anew.
func TestLook_leavesADamagedLeaderToItsHeartbeat(t *testing.T) {
	t.Parallel()
	for _, damage := range []func(context.Context, *tower) error{
		func(ctx context.Context, w *tower) error { return w.rdb.HDel(ctx, w.q.Keys().Leader, "epoch").Err() },
		func(ctx context.Context, w *tower) error { return w.rdb.HDel(ctx, w.q.Keys().Leader, "gen").Err() },
		func(ctx context.Context, w *tower) error { return w.rdb.ZRem(ctx, w.q.Keys().Instances, "b").Err() },
	} {
		towers(t, func(t *testing.T, w *tower) {
			w.idle(w.b)
			must(t, damage(t.Context(), w))
			if l := w.look(); l.Suspected || l.Monitor {
				t.Errorf("%+v", l)
			}
		})
	}
}
