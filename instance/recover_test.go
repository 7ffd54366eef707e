package instance

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestManager_takesBackTheTasksOfTheLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		dead := r.up("dead", "", consume(ConsumeAll))
		r.open(dead)
		r.add(
			&task.Task{ID: "again", Type: "t", MaxAttempts: 2},
			&task.Task{ID: "last", Type: "t", MaxAttempts: 1},
			&task.Task{ID: "slot", Type: "t", Schedule: "nightly", Slot: time.Now().Truncate(time.Second)},
			&task.Task{ID: "keyed", Type: "t", Key: "k", Overlap: task.Skip},
		)
		r.wantClaims(dead, 4)
		must(t, r.rdb.HSet(t.Context(), r.q.Keys().Running(dead.gen), "strange", "1 2 3").Err())
		must(t, r.rdb.HSet(t.Context(), r.q.Keys().Tasks, "strange", "9 of a much newer release").Err())

		other, _ := r.other(mini)
		r.node(Config{ID: "a"}).session()
		other.node(Config{ID: "b"}).session() // two recoverers
		r.expire(dead, time.Millisecond)
		testredis.Eventually(t, testTimeout, func() bool {
			n, err := r.rdb.HLen(t.Context(), r.q.Keys().Running(dead.gen)).Result()
			return err == nil && n == 1 // but for the one that cannot be read
		}, "the tasks are taken back")
		time.Sleep(3 * time.Minute)

		if died, _ := r.rdb.ZRange(t.Context(), r.q.Keys().Dead, 0, -1).Result(); len(died) != 1 || died[0] != "last" {
			t.Fatalf("dead: %q, want last", died)
		}
		if n, _ := r.rdb.HGet(t.Context(), r.q.Keys().Meta, "died").Int(); n != 1 {
			t.Fatalf("%d deaths counted", n)
		}
		notes, err := r.rdb.XRange(t.Context(), r.q.Keys().History, "-", "+").Result()
		must(t, err)
		if len(notes) != 1 {
			t.Fatalf("notes %v, want one", notes)
		}
		var id, what string
		var attempt, at int64
		scan(t, notes[0].Values["runs"], &id, &what, &attempt, &at)
		if id != "slot" || what != "lost" || attempt != 1 {
			t.Fatalf("note %v", notes[0].Values)
		}

		leader := r.heir()
		got := r.wantClaims(leader, 3)
		for _, c := range got {
			if c.Attempts != 1 || c.Attempt != 2 || c.LastError() != lostText {
				t.Errorf("%s: %d attempts, run %d, error %q", c.ID, c.Attempts, c.Attempt, c.LastError())
			}
		}
		if orphans := r.beat(leader).Orphans; len(orphans) != 1 || orphans[0] != dead.gen {
			t.Fatalf("orphans %v, want the one with the task that cannot be read", orphans)
		}
	})
}

// With an archive also the lost runs of tasks that are no slots are noted, each once, and those that cannot be read.
func TestManager_notesEachLostRunForAnArchive(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		var err error
		r.q, err = queue.New(r.rdb, r.p, queue.Caps{Archive: 100})
		must(t, err)
		dead := r.up("dead", "", consume(ConsumeAll))
		r.open(dead)
		slot := time.Now().Truncate(time.Second)
		r.add(
			&task.Task{ID: "again", Type: "t", MaxAttempts: 2},
			&task.Task{ID: "last", Type: "t", MaxAttempts: 1},
			&task.Task{ID: "damaged", Type: "t"},
			&task.Task{ID: task.SlotID("nightly", slot), Type: "t", Schedule: "nightly", Slot: slot},
		)
		r.wantClaims(dead, 4)
		must(t, r.rdb.HSet(t.Context(), r.q.Keys().Tasks, "damaged", "1 damaged").Err())
		r.node(Config{ID: "a"}).session()
		r.expire(dead, time.Millisecond)
		time.Sleep(3 * time.Minute)
		got := map[string]string{}
		for _, read := range []func(context.Context, string, func(history.Entry) error) error{r.q.HistoryAfter, r.q.RunsAfter} {
			must(t, read(t.Context(), "", func(e history.Entry) error {
				for _, n := range e.Notes {
					got[n.TaskID] += string(n.Word) + " " + n.Type + " " + n.Error
				}
				return nil
			}))
		}
		want := map[string]string{
			"again": "lost t " + lostText, "last": "dead t " + lostText, "damaged": "dead  ", task.SlotID("nightly", slot): "lost t " + lostText,
		}
		if !maps.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// The leader is told at once that another instance found a lost one. Until the lost runs are taken back they hold their keys,
// and slots would be dropped because they overlap them.
func TestManager_takesBackAtOnceWhatAnotherFound(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		s := r.node(Config{ID: "leader", Consume: ConsumeAll, Lease: time.Hour}).session()
		dead := r.up("dead", "", standby)
		time.Sleep(30 * time.Second)
		r.open(member{"leader", s.Gen})
		r.enqueue("x")
		r.wantClaims(dead, 1)
		r.expire(dead, time.Millisecond)
		r.join("finder", "")
		time.Sleep(10 * time.Millisecond)
		if n := r.rdb.HLen(t.Context(), r.q.Keys().Running(dead.gen)).Val(); n != 0 {
			t.Fatal("what the lost instance ran waits for a heartbeat, which is minutes away")
		}
	})
}

func TestRecover_onceEvenByManyAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, testredis.Real(t))
	dead := r.up("dead", "")
	r.open(dead)
	const n = 500
	var list []*task.Task
	for i := range n {
		slot := time.UnixMilli(int64(1000 * (i + 1)))
		list = append(list, &task.Task{ID: task.SlotID("beat", slot), Schedule: "beat", Slot: slot, Type: lane.Type, MaxAttempts: 1 + i%2})
	}
	r.add(list...)
	r.want = n
	r.wantClaims(dead, n)
	m, err := New(r.q.Client(), r.p.Namespace, Config{})
	must(t, err)
	if stuck, err := m.recover(t.Context(), dead.gen); err != nil || stuck {
		t.Fatalf("%v, %v of a generation that is alive", stuck, err)
	}
	leader := r.up("leader", "")
	r.expire(dead, time.Millisecond)
	r.beat(leader)

	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if stuck, err := m.recover(t.Context(), dead.gen); err != nil || stuck {
				t.Error(stuck, err)
			}
		})
	}
	all.Wait()
	k := r.q.Keys()
	if died, err := r.rdb.ZCard(t.Context(), k.Dead).Result(); err != nil || died != n/2 {
		t.Fatalf("%d are dead, want %d; %v", died, n/2, err)
	}
	if counted, err := r.rdb.HGet(t.Context(), k.Meta, "died").Int(); err != nil || counted != n/2 {
		t.Fatalf("%d deaths counted, want %d; %v", counted, n/2, err)
	}
	noted := map[string]int{}
	must(t, r.q.History(t.Context(), time.Time{}, func(e history.Entry) error {
		for _, note := range e.Notes {
			noted[string(note.Word)]++
		}
		return nil
	}))
	if noted["lost"] != n/2 || noted["dead"] != n/2 {
		t.Fatalf("noted %v, want %d lost and as many dead: what has no attempt left does not run again", noted, n/2)
	}
	for _, c := range r.wantClaims(leader, n/2) {
		if c.Attempts != 1 || c.Attempt != 2 {
			t.Fatalf("%s: %d attempts, run %d", c.ID, c.Attempts, c.Attempt)
		}
	}
	if orphans := r.beat(leader).Orphans; len(orphans) != 0 {
		t.Fatalf("orphans %v are left", orphans)
	}
}
