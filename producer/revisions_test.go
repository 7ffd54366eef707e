package producer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// revisions are those of a schedule, the newest first: "what by every".
func (w *world) revisions(name string) (list []string) {
	w.Helper()
	page, _, err := w.Revisions(w.Context(), name, 100, "")
	must(w, err)
	for _, r := range page {
		said := "-"
		if r.Schedule != nil {
			said = r.Schedule.Every.String()
		}
		list = append(list, fmt.Sprintf("%s %s %s", r.What, r.By, said))
	}
	return list
}

func TestApplyIf_changesOnlyWhatTheCallerHasSeen(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		ctx := t.Context()
		refused := func(revision int64) {
			t.Helper()
			did, err := w.ApplyIf(ctx, every(time.Minute), revision)
			if !errors.Is(err, ErrRevision) || did != "" {
				t.Errorf("%v, %v", did, err)
			}
		}
		refused(7)
		if did, err := w.ApplyIf(ctx, every(time.Hour), 0); did != Made || err != nil {
			t.Fatalf("%v, %v", did, err)
		}
		made, err := w.Get(ctx, "s")
		must(t, err)
		refused(0)
		if did, err := w.ApplyIf(ctx, every(2*time.Hour), made.Revision); did != Changed || err != nil {
			t.Fatalf("%v, %v", did, err)
		}
		changed, err := w.Get(ctx, "s")
		must(t, err)
		refused(made.Revision)
		tn := w.lead("one", "", nil) // a push is no change
		must(t, tn.takeStock(ctx))
		must(t, tn.push(ctx))
		if did, err := w.ApplyIf(ctx, every(2*time.Hour), changed.Revision); did != Unchanged || err != nil {
			t.Errorf("%v, %v", did, err)
		}
		must(t, second(w.Pause(ctx, "s", "")))
		refused(changed.Revision)
		must(t, w.Delete(ctx, "s"))
		refused(changed.Revision)
		must(t, w.Restore(ctx, "s"))
		refused(changed.Revision)
		must(t, rdb.HSet(ctx, w.q.Keys().Last, "s", "rubbish").Err())
		refused(0)
		if did, err := w.Apply(ctx, every(time.Minute)); did != Changed || err != nil {
			t.Errorf("%v, %v", did, err)
		}
	})
}

// Of callers that have seen the same revision one changes the schedule, however they interleave.
func TestApplyIf_letsOneOfManyThrough(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	ctx := t.Context()
	w.apply("s", schedule.Every(time.Hour))
	for round := range 20 {
		seen, err := w.Get(ctx, "s")
		must(t, err)
		var through atomic.Int32
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				_, err := w.ApplyIf(ctx, every(time.Duration(4*round+i+1)*time.Minute), seen.Revision)
				if err == nil {
					through.Add(1)
				} else if !errors.Is(err, ErrRevision) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := through.Load(); n != 1 {
			t.Fatalf("%d of 4 changed it", n)
		}
	}
}

func TestRevert_goesBackAndIsARevision(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		ctx := t.Context()
		ann, bob := w.By("ann"), w.By("bob")
		first := every(time.Hour)
		first.Payload = json.RawMessage(`{"key": "of ann"}`)
		must(t, second(ann.Apply(ctx, first)))
		was, err := w.Get(ctx, "s")
		must(t, err)
		must(t, second(bob.Apply(ctx, every(time.Minute))))
		if did, err := ann.Revert(ctx, "s", was.Revision); did != Changed || err != nil {
			t.Fatalf("%v, %v", did, err)
		}
		if did, err := ann.Revert(ctx, "s", was.Revision); did != Unchanged || err != nil {
			t.Errorf("again: %v, %v", did, err)
		}
		is, err := w.Get(ctx, "s")
		must(t, err)
		if string(is.Schedule.Payload) != `{"key":"of ann"}` || is.Schedule.Every != time.Hour || !is.Anchor.Equal(was.Anchor) {
			t.Errorf("%+v", is)
		}
		if got := fmt.Sprint(w.revisions("s")); got != "[reverted ann 1h0m0s changed bob 1m0s made ann 1h0m0s]" {
			t.Error(got)
		}
		events, err := w.q.Events(ctx, time.Time{}, 10)
		must(t, err)
		e := events[len(events)-1]
		if e.Kind != "schedule reverted" || e.Fields["by"] != "ann" ||
			e.Fields["changes"] != `[{"field":"every","from":"1m","to":"1h"},{"field":"payload.key","from":"","to":"…"}]` {
			t.Errorf("%+v", e)
		}
		page, next, err := w.Revisions(ctx, "s", 2, "")
		if err != nil || len(page) != 2 || next != fmt.Sprint(page[1].Number) || len(page[0].Changes) != 2 || page[0].Changes[1].To != `"of ann"` {
			t.Errorf("%+v, %q, %v", page, next, err)
		}
		if page, next, err = w.Revisions(ctx, "s", 2, next); err != nil || len(page) != 1 || next != "" || page[0].Number != was.Revision {
			t.Errorf("%+v, %q, %v", page, next, err)
		}
		must(t, w.Delete(ctx, "s"))
		page, _, err = w.Revisions(ctx, "s", 1, "")
		must(t, err)
		if _, err := w.Revert(ctx, "s", was.Revision); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("of one that is deleted: %v", err)
		}
		must(t, w.Restore(ctx, "s"))
		for _, n := range []int64{1, page[0].Number} {
			if _, err := w.Revert(ctx, "s", n); !errors.Is(err, task.ErrInvalid) {
				t.Errorf("to %d: %v", n, err)
			}
		}
		for _, after := range []string{"x", "0", "-1"} {
			if _, _, err := w.Revisions(ctx, "s", 1, after); !errors.Is(err, task.ErrInvalid) {
				t.Errorf("after %q: %v", after, err)
			}
		}
		if _, _, err := w.Revisions(ctx, "none", 1, ""); !errors.Is(err, task.ErrNotFound) {
			t.Error(err)
		}
	})
}

func TestRestore_goesOnAsItWas(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		w := newWorld(t, rdb)
		ctx := t.Context()
		w.apply("s", schedule.Every(20*time.Millisecond))
		tn := w.lead("one", "", nil)
		must(t, tn.takeStock(ctx))
		must(t, tn.push(ctx))
		time.Sleep(50 * time.Millisecond)
		was, err := w.Get(ctx, "s")
		must(t, err)
		must(t, w.By("ann").Delete(ctx, "s"))
		list, err := w.Deleted(ctx)
		if err != nil || len(list) != 1 || list[0].Deleted == nil || list[0].Deleted.By != "ann" || list[0].Revision != 0 || !list[0].Next.IsZero() {
			t.Fatalf("%+v, %v", list, err)
		}
		if _, err := w.Retired(ctx, "s"); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("it counts as retired: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
		must(t, w.By("bob").Restore(ctx, "s"))
		is, err := w.Get(ctx, "s")
		must(t, err)
		if !is.Anchor.Equal(was.Anchor) || is.Runs < was.Runs || is.Paused || is.Revision <= was.Revision {
			t.Errorf("was %+v\nis %+v", was, is)
		}
		must(t, tn.refresh(ctx))
		must(t, tn.push(ctx))
		w.account("s")
		deleted := int64(0)
		for _, n := range w.notes("s") {
			if n.Word == history.Deleted {
				deleted += n.Count
			}
		}
		if deleted < 4 {
			t.Errorf("%d slots are noted as deleted", deleted)
		}
		if err := w.Restore(ctx, "s"); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("twice: %v", err)
		}
		must(t, second(w.Pause(ctx, "s", "")))
		must(t, w.Delete(ctx, "s"))
		must(t, w.Restore(ctx, "s"))
		if is, err := w.Get(ctx, "s"); err != nil || !is.Paused {
			t.Errorf("it was paused: %+v, %v", is, err)
		}
		if list, err := w.Deleted(ctx); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// A schedule that is made, or declared, under the name of a deleted one begins anew, and the deleted one is gone.
func TestDelete_aNameThatIsUsedAgainBeginsAnew(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		ctx := t.Context()
		declared := every(time.Hour)
		for what, again := range map[string]func(){
			"applied": func() { must(t, second(w.Apply(ctx, every(time.Hour)))) },
			"declared": func() {
				tn := w.lead("one", "v1", func() []Schedule { return []Schedule{declared} })
				stored, err := tn.stock(ctx)
				must(t, err)
				must(t, tn.declare(ctx, stored))
			},
		} {
			must(t, second(w.Apply(ctx, every(time.Hour))))
			was, err := w.Get(ctx, "s")
			must(t, err)
			must(t, w.Delete(ctx, "s"))
			time.Sleep(2 * time.Millisecond)
			again()
			is, err := w.Get(ctx, "s")
			must(t, err)
			if !is.Anchor.After(was.Anchor) || is.Runs != 0 {
				t.Errorf("%s: %+v", what, is)
			}
			must(t, rdb.HDel(ctx, w.q.Keys().Schedules, "s").Err())
			must(t, rdb.HDel(ctx, w.q.Keys().Last, "s").Err())
			if err := w.Restore(ctx, "s"); !errors.Is(err, task.ErrNotFound) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// The text of a change in an event is bounded, is JSON, and has no value of a payload.
func TestChangesMade_isBounded(t *testing.T) {
	t.Parallel()
	s := every(time.Hour)
	fields := map[string]string{}
	for i := range 3_000 {
		fields[fmt.Sprint("field", i)] = "secret"
	}
	s.Payload, _ = json.Marshal(fields)
	s.Cron = strings.Repeat("é", 1000)
	text := changesMade(nil, &s)
	var list []FieldChange
	must(t, json.Unmarshal([]byte(text), &list))
	if len(text) > longestChanges || strings.Contains(text, "secret") || len(list) < 10 || !strings.HasSuffix(list[len(list)-1].To, " more") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// A user who removes a key must know that a deleted schedule may come back and need it.
func TestKeysOf_countsWhatCanBeRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	keys, err := seal.New(task.Encryption{Keys: []task.EncryptionKey{{ID: "old", Secret: make([]byte, task.EncryptionKeyBytes)}}}, w.q.Namespace())
	must(t, err)
	w.q.SealWith(keys)
	s := every(time.Hour)
	s.Payload = json.RawMessage(`{"card":"4111"}`)
	_, err = w.Apply(t.Context(), s)
	must(t, err)
	must(t, w.Delete(t.Context(), s.Name))
	if found, err := w.KeysOf(t.Context()); err != nil || found["old"] != 1 {
		t.Errorf("%v, %v", found, err)
	}
	must(t, w.Restore(t.Context(), s.Name))
	if found, err := w.KeysOf(t.Context()); err != nil || found["old"] != 1 {
		t.Errorf("restored: %v, %v", found, err)
	}
}
