package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// archived keeps what an archive has not read yet.
var archived = queue.Caps{Archive: 1000, Output: 64}

// slotsNoted and runsNoted are the notes of the two streams, oldest first, in few words.
func (w *world) slotsNoted() []string {
	w.Helper()
	return w.noted(w.q.HistoryAfter)
}

func (w *world) runsNoted() []string {
	w.Helper()
	return w.noted(w.q.RunsAfter)
}

func (w *world) noted(read func(ctx context.Context, id string, fn func(history.Entry) error) error) (list []string) {
	w.Helper()
	w.must(read(w.Context(), "", func(e history.Entry) error {
		for _, n := range e.Notes {
			list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %d %s/%s %s", n.TaskID, n.Word, n.Attempt, n.Type, n.Queue, n.Output)))
		}
		return nil
	}))
	return list
}

// half returns tasks of which every other is a slot, all due.
func half(n int) (list []*task.Task) {
	for i := range n {
		t := job(fmt.Sprint("one@", i), task.Keep(-1)) // an ID like that of a slot
		if i%2 == 0 {
			t = &task.Task{ID: task.SlotID("s", ms(int64(1000+i))), Type: "job", Schedule: "s", Slot: ms(int64(1000 + i))}
		}
		list = append(list, t)
	}
	return list
}

// With an archive each run is noted with its facts, those of slots and those of other tasks each in its stream, also if a
// settlement beside it is void. Without one, only slots are, and there are no facts.
func TestCycle_notesEachRunForAnArchive(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		for _, caps := range []queue.Caps{archived, {}} {
			for _, void := range [][]int{nil, {0}, {1}, {2, 3}, {0, 2, 4}, {1, 3, 5}, {0, 1, 2, 3, 4, 5}} {
				w := newWorld(t, rdb, caps)
				a := w.join("a")
				w.add(half(6)...)
				claimed := a.claim(6, lanesOf("job"))
				slices.SortFunc(claimed, func(x, y *task.Task) int { return strings.Compare(x.ID[len(x.ID)-1:], y.ID[len(y.ID)-1:]) })
				var settle []queue.Settlement
				var slots, runs []string
				for i, tk := range claimed {
					s := queue.Settlement{ID: tk.ID, Fence: tk.Fence, Outcome: queue.Finished}
					if i >= 3 { // some of each kind are settled in another way
						s.Outcome, s.Record = queue.Died, queue.Rewrite(tk)
					}
					s.Note = w.q.Notes().Run(tk, history.Done, time.Second, fmt.Sprint("error ", i), fmt.Sprint("out\n", i))
					if slices.Contains(void, i) {
						s.Fence++
					} else if line := fmt.Sprintf("%s done 1 job/default out\n%d", tk.ID, i); caps.Archive == 0 && i%2 == 0 {
						slots = append(slots, tk.ID+" done 1 /")
					} else if i%2 == 0 {
						slots = append(slots, line)
					} else if caps.Archive > 0 {
						runs = append(runs, line)
					}
					settle = append(settle, s)
				}
				same(t, "void", len(a.cycle(0, nil, settle...).Void), len(void))
				equal(t, fmt.Sprint("slots with ", void), w.slotsNoted(), slots)
				equal(t, fmt.Sprint("runs with ", void), w.runsNoted(), runs)
				if n := rdb.Exists(t.Context(), w.keys.Runs).Val(); caps.Archive == 0 && n != 0 {
					t.Error("there is a stream of runs without an archive")
				}
				if ttl := rdb.PTTL(t.Context(), w.keys.Runs).Val(); len(runs) > 0 && ttl < 29*24*time.Hour {
					t.Errorf("what no archive reads stays for %v, want a month", ttl)
				}
			}
		}
	})
}

// A slot that an overlap policy drops is noted in the same call, without facts. The facts of the others stay theirs.
func TestCycle_notesADroppedSlotBesideFacts(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb, archived)
		a := w.join("a")
		slot := func(i int64) *task.Task {
			return &task.Task{ID: task.SlotID("s", ms(i)), Type: "job", Schedule: "s", Slot: ms(i), Key: "s", Overlap: task.Skip}
		}
		w.add(slot(1), job("other"))
		claimed := a.claim(2, lanesOf("job"))
		w.add(slot(2))
		i := slices.IndexFunc(claimed, func(x *task.Task) bool { return x.ID == "other" })
		s := finished(claimed[i])
		s.Note = w.q.Notes().Run(claimed[i], history.Done, 0, "", "out")
		same(t, "skipped", a.cycle(1, lanesOf("job"), s).Skipped, 1)
		equal(t, "slots", w.slotsNoted(), []string{"s@2 skipped 0 /"})
		equal(t, "runs", w.runsNoted(), []string{"other done 1 job/default out"})
	})
}

// Lost and cancelled runs are noted too, each in its stream.
func TestRecover_notesEachRunForAnArchive(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		for _, caps := range []queue.Caps{archived, {}} {
			w := newWorld(t, rdb, caps)
			a := w.join("a")
			w.add(half(4)...)
			a.claim(4, lanesOf("job"))
			b := w.join("b")
			a.lose(b)
			list := w.recoveries(a.gen)
			for i := range list {
				list[i].Note = w.q.Notes().Run(list[i].Claim.Task, history.Lost, 0, "lost", "")
			}
			list[0].Claim.Value = "another" // this one is void
			_, left, err := w.q.Recover(t.Context(), a.gen, list)
			w.must(err)
			same(t, "left", left, 1)
			var slots, runs []string
			for _, r := range list[1:] {
				switch id := r.Claim.Task.ID; {
				case strings.HasPrefix(id, "s@") && caps.Archive > 0:
					slots = append(slots, id+" lost 1 job/default")
				case strings.HasPrefix(id, "s@"):
					slots = append(slots, id+" lost 1 /")
				case caps.Archive > 0:
					runs = append(runs, id+" lost 1 job/default")
				}
			}
			equal(t, "slots", w.slotsNoted(), slots)
			equal(t, "runs", w.runsNoted(), runs)
		}
	})
}

func TestCancel_notesEachTaskForAnArchive(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		for _, caps := range []queue.Caps{archived, {}} {
			w := newWorld(t, rdb, caps)
			list := append(half(2), job("keyed", task.In(time.Hour), task.Key("k", 1)))
			w.add(list...)
			for _, tk := range list {
				_, err := w.q.Cancel(t.Context(), tk.ID, "by hand", false)
				w.must(err)
			}
			if caps.Archive == 0 {
				equal(t, "slots", w.slotsNoted(), []string{"s@1000 cancelled 0 /"})
				equal(t, "runs", w.runsNoted(), nil)
				continue
			}
			equal(t, "slots", w.slotsNoted(), []string{"s@1000 cancelled 0 job/default"})
			equal(t, "runs", w.runsNoted(), []string{"one@1 cancelled 0 job/default", "keyed cancelled 0 job/default"})
		}
	})
}

// Another program wrote over the stream of runs: nothing is half done, and it is mended like the others.
func TestCycle_survivesADamagedStreamOfRuns(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb, archived)
		a := w.join("a")
		w.add(job("x", task.Keep(-1)))
		x := a.claim(1, lanesOf("job"))[0]
		w.must(rdb.Set(t.Context(), w.keys.Runs, "not a stream", 0).Err())
		s := finished(x)
		s.Note = w.q.Notes().Run(x, history.Done, 0, "", "")
		_, err := w.q.Cycle(t.Context(), a.request(0, nil, s))
		if err == nil {
			t.Fatal("the note was lost without an error")
		}
		same(t, "records", w.count(w.keys.Tasks), 1)
		aside, err := w.q.Mend(t.Context(), err)
		w.must(err)
		equal(t, "set aside", aside, []string{w.keys.Runs})
		same(t, "void", len(a.cycle(0, nil, s).Void), 0)
		equal(t, "runs", w.runsNoted(), []string{"x done 1 job/default"})
	})
}

// The streams keep as much as the archive may lag behind, and no more.
func TestCycle_capsTheRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t), queue.Caps{Archive: 100, History: 50})
	a := w.join("a")
	for i := range 500 {
		w.add(half(2)...)
		var settle []queue.Settlement
		for _, tk := range a.claim(2, lanesOf("job")) {
			s := finished(tk)
			s.Note = w.q.Notes().Run(tk, history.Done, 0, "", fmt.Sprint(i))
			settle = append(settle, s)
		}
		a.cycle(0, nil, settle...)
	}
	for _, key := range []string{w.keys.Runs, w.keys.History} {
		if n := w.count(key); n < 100 || n > 300 { // Redis cuts a stream by whole nodes
			t.Errorf("%s has %d entries, want about 100", key, n)
		}
	}
}

func TestCaps_ofAnArchive(t *testing.T) {
	t.Parallel()
	for _, c := range []queue.Caps{{Archive: -1}, {Buffer: -1}, {Buffer: queue.LeastBuffer - 1}, {Output: queue.MaxOutput + 1}} {
		if err := c.Validate(); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	if c := (queue.Caps{Buffer: 512 << 20}).WithDefaults(); c.Archive != 4<<20 {
		t.Errorf("%+v", c)
	}
	if c := (queue.Caps{}).WithDefaults(); c.Archive != 0 || c.Output != 1<<10 {
		t.Errorf("%+v", c)
	}
	if err := (queue.Caps{Archive: 1, Output: -1}).Validate(); err != nil {
		t.Error(err)
	}
}
