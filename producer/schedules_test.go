package producer

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

func every(d time.Duration) Schedule {
	return Schedule{Name: "s", Rule: schedule.Every(d), Task: "job"}
}

// TestChange_nothingPushedAheadLeaks: after each call returned, no slot of the old rule lies ahead.
func TestChange_nothingPushedAheadLeaks(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		w := newWorld(t, rdb)
		ctx := context.Background()
		ahead := func() (n int) {
			now := w.now().UnixMilli()
			for ms := range w.pushed("s") {
				if ms > now {
					n++
				}
			}
			return n
		}
		w.apply("s", schedule.Every(10*time.Millisecond))
		tn := w.lead("one", "", nil)
		must(t, tn.takeStock(ctx))
		push := func() {
			t.Helper()
			must(t, tn.refresh(ctx))
			must(t, tn.push(ctx))
			if ahead() < 5 {
				t.Fatal("nothing lies ahead")
			}
		}
		push()
		was, err := w.Get(ctx, "s")
		must(t, err)

		did, err := w.Pause(ctx, "s", "")
		if !did || err != nil || ahead() != 0 {
			t.Fatalf("pause: %v, %v, %d ahead", did, err, ahead())
		}
		if did, err := w.Pause(ctx, "s", ""); did || err != nil {
			t.Fatalf("pause again: %v, %v", did, err)
		}
		must(t, tn.push(ctx)) // as the leader still holds it
		if n := ahead(); n != 0 {
			t.Fatalf("%d slots were pushed of a paused schedule", n)
		}
		time.Sleep(60 * time.Millisecond)
		did, err = w.Resume(ctx, "s")
		if !did || err != nil {
			t.Fatalf("resume: %v, %v", did, err)
		}
		if did, err := w.Resume(ctx, "s"); did || err != nil {
			t.Fatalf("resume again: %v, %v", did, err)
		}
		push()
		if _, noted := w.account("s"); noted < 3 {
			t.Errorf("%d slots of the pause were noted", noted)
		}

		res, err := w.Apply(ctx, Schedule{Name: "s", Rule: schedule.Every(10 * time.Millisecond), Task: "job", Payload: json.RawMessage(`{"a": 1}`)})
		if res != Changed || err != nil || ahead() != 0 {
			t.Fatalf("another payload: %v, %v, %d ahead", res, err, ahead())
		}
		push()
		w.account("s")
		if res, err := w.Apply(ctx, Schedule{Name: "s", Rule: schedule.Every(10 * time.Millisecond), Task: "job", Payload: json.RawMessage(`{"a":1}`)}); res != Unchanged || err != nil {
			t.Fatalf("the same again: %v, %v", res, err)
		}

		if res, err := w.Apply(ctx, every(25*time.Millisecond)); res != Changed || err != nil || ahead() != 0 {
			t.Fatalf("another interval: %v, %v, %d ahead", res, err, ahead())
		}
		push()
		now, err := w.Get(ctx, "s")
		must(t, err)
		if !now.Anchor.Equal(was.Anchor) {
			t.Errorf("the anchor moved from %v to %v", was.Anchor, now.Anchor)
		}

		must(t, w.Delete(ctx, "s"))
		if n := ahead(); n != 0 {
			t.Errorf("%d ahead after it was deleted", n)
		}
		must(t, tn.push(ctx))
		if n := ahead(); n != 0 {
			t.Errorf("%d pushed after it was deleted", n)
		}
		for what, err := range map[string]error{
			"delete": w.Delete(ctx, "s"), "get": second(w.Get(ctx, "s")), "pause": second(w.Pause(ctx, "s", "")),
			"trigger": second(w.Trigger(ctx, "s", nil)), "backfill": second(w.backfill(ctx, "s", epoch, epoch, nil)),
		} {
			if !errors.Is(err, task.ErrNotFound) {
				t.Errorf("%s of one that is deleted: %v", what, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// TestChange_whileTheLeaderPushes hammers a schedule with changes and loses or doubles no slot.
func TestChange_whileTheLeaderPushes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	ctx := t.Context()
	w.apply("s", schedule.Every(5*time.Millisecond))
	tn := w.lead("one", "", nil)
	must(t, tn.takeStock(ctx))
	over := time.Now().Add(3 * time.Second)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := 0; time.Now().Before(over); i++ {
				var err error
				switch rand.IntN(3) {
				case 0:
					_, err = w.Pause(ctx, "s", "")
				case 1:
					_, err = w.Resume(ctx, "s")
				default:
					s := every(5 * time.Millisecond)
					s.MaxAttempts = 1 + rand.IntN(3)
					_, err = w.Apply(ctx, s)
				}
				if err != nil && !errors.Is(err, task.ErrChanged) {
					t.Error(err)
				}
				time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
			}
		})
	}
	for time.Now().Before(over) {
		must(t, tn.refresh(ctx))
		must(t, tn.push(ctx))
		time.Sleep(10 * time.Millisecond)
	}
	wg.Wait()
	_, err := w.Resume(ctx, "s")
	must(t, err)
	must(t, tn.refresh(ctx))
	must(t, tn.push(ctx))
	if pushed, noted := w.account("s"); pushed == 0 || noted == 0 {
		t.Errorf("%d pushed, %d noted", pushed, noted)
	}
}

func TestApply_startAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	ctx := t.Context()
	s := every(time.Hour)
	s.Start = w.now().Add(-90 * time.Minute).Truncate(time.Second).Format(time.RFC3339)
	if _, err := w.Apply(ctx, s); err != nil {
		t.Fatal(err)
	}
	if _, noted := w.account("s"); noted != 2 {
		t.Errorf("%d slots lie before it was made, want 2", noted)
	}
	s.Start = ""
	if _, err := w.Apply(ctx, s); err != nil {
		t.Fatal(err)
	}
	tn := w.lead("one", "", nil)
	tn.open = true
	must(t, tn.takeStock(ctx))
	must(t, tn.push(ctx))
	got, err := w.Get(ctx, "s")
	must(t, err)
	if !w.pushed("s")[got.Anchor.UnixMilli()] {
		t.Errorf("the new slot zero, %v, was not pushed", got.Anchor)
	}
}

func TestApply_aLaterEndBringsNoBacklog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	ctx := t.Context()
	s := every(20 * time.Millisecond)
	s.Missed, s.MaxRuns = schedule.MissedAll, 3
	if _, err := w.Apply(ctx, s); err != nil {
		t.Fatal(err)
	}
	tn := w.lead("one", "", nil)
	must(t, tn.takeStock(ctx))
	must(t, tn.push(ctx))
	time.Sleep(1500 * time.Millisecond)
	s.MaxRuns = 5
	if _, err := w.Apply(ctx, s); err != nil {
		t.Fatal(err)
	}
	at := w.now().Add(-time.Second).UnixMilli()
	must(t, tn.refresh(ctx))
	must(t, tn.push(ctx))
	n := 0
	for ms := range w.pushed("s") {
		if ms > at {
			n++
		}
	}
	if all := len(w.pushed("s")); all != 5 || n != 2 {
		t.Errorf("%d pushed in all, %d since it was prolonged; want 5 and 2", all, n)
	}
}

// A slot that is backfilled soon after it came waits for its jitter.
func TestPromise6_aBackfillRunsNothingEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	ctx := t.Context()
	rule := schedule.Rule{Every: time.Minute, Jitter: time.Minute}
	ahead := 0
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		_, err := w.Apply(ctx, Schedule{Name: name, Rule: rule, Task: "job"})
		must(t, err)
		s, err := w.Get(ctx, name)
		must(t, err)
		n, err := w.backfill(ctx, name, s.Anchor.Add(-time.Minute), s.Anchor, nil)
		if n != 2 || err != nil {
			t.Fatalf("%d were added: %v", n, err)
		}
		now := w.now()
		for _, slot := range []time.Time{s.Anchor.Add(-time.Minute), s.Anchor} {
			tk := task.Task{ID: task.SlotID(name, slot) + "+backfill", Type: "job", Priority: task.Low}
			score, err := w.rdb.ZScore(ctx, w.q.Keys().Due(queue.LaneOf(&tk)), tk.ID).Result()
			must(t, err)
			due, first := store.FromMs(int64(score)), rule.JitterFor(name, slot)
			if due.Before(first) || first.Before(now.Add(-10*time.Second)) && due.After(now) {
				t.Errorf("slot %v of %s is due at %v, and its time is %v", slot, name, due, first)
			}
			if first.After(now) {
				ahead++
			}
		}
	}
	if ahead == 0 {
		t.Error("all jitter had gone by: nothing was put to the test")
	}
}

// A trigger of a schedule that has ended is retried as long as one that has no next slot.
func TestTrigger_ofAScheduleThatHasEnded(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.apply("s", schedule.Rule{Every: time.Minute, Until: w.now().Add(time.Hour)})
		time.Sleep(2 * time.Hour)
		id, err := w.Trigger(t.Context(), "s", nil)
		must(t, err)
		rec := task.Task{ID: id}
		must(t, task.Decode(w.rdb.HGet(t.Context(), w.q.Keys().Tasks, id).Val(), &rec))
		if rec.MaxAttempts != 12 || rec.Backoff != (task.Backoff{}) {
			t.Errorf("%d attempts, %+v", rec.MaxAttempts, rec.Backoff)
		}
	})
}

func TestTriggerAndBackfill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	ctx := t.Context()
	if _, err := w.Apply(ctx, Schedule{Name: "s", Rule: schedule.Every(time.Minute), Task: "job", Payload: json.RawMessage(`1`)}); err != nil {
		t.Fatal(err)
	}
	id, err := w.Trigger(ctx, "s", json.RawMessage(`2`))
	if err != nil || !strings.HasPrefix(id, "s!") {
		t.Fatalf("triggered %q, %v", id, err)
	}
	rec := task.Task{ID: id}
	must(t, task.Decode(w.rdb.HGet(ctx, w.q.Keys().Tasks, id).Val(), &rec))
	if rec.Schedule != "s" || string(rec.Payload) != "2" || !rec.Slot.IsZero() {
		t.Errorf("triggered %+v", rec)
	}

	s, err := w.Get(ctx, "s")
	must(t, err)
	from, to := s.Anchor.Add(-10*time.Minute), s.Anchor.Add(-8*time.Minute)
	var told []int
	n, err := w.backfill(ctx, "s", from, to, func(done, of int) { told = append(told, done, of) })
	if n != 3 || err != nil || len(told) != 2 || told[0] != 3 || told[1] != 3 {
		t.Errorf("backfilled %d, %v, told %v", n, err, told)
	}
	for k := range 3 {
		id := task.SlotID("s", from.Add(time.Duration(k)*time.Minute)) + "+backfill"
		rec := task.Task{ID: id}
		must(t, task.Decode(w.rdb.HGet(ctx, w.q.Keys().Tasks, id).Val(), &rec))
		if rec.Priority != task.Low || rec.Slot.IsZero() {
			t.Errorf("%+v", rec)
		}
	}
	if n, err := w.backfill(ctx, "s", from, to, nil); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
	before, err := w.q.Events(ctx, time.Time{}, 100)
	must(t, err)
	dry, err := w.Backfill(ctx, "s", Backfilling{From: from, To: to.Add(time.Minute), DryRun: true})
	if err != nil || dry != (Backfilled{Slots: 4, Added: 1}) {
		t.Errorf("a dry run: %+v, %v", dry, err)
	}
	if after, err := w.q.Events(ctx, time.Time{}, 100); err != nil || len(after) != len(before) {
		t.Errorf("a dry run left %d events, %v", len(after)-len(before), err)
	}
	if n, err := w.backfill(ctx, "s", from.Add(time.Microsecond), to.Add(time.Minute), nil); n != 1 || err != nil {
		t.Errorf("from a microsecond later, to the next: %d, %v", n, err)
	}
	var field *task.FieldError
	if _, err := w.backfill(ctx, "s", to, from, nil); !errors.As(err, &field) || field.Field != "to" {
		t.Errorf("to before from: %v", err)
	}
	if _, err := w.backfill(ctx, "s", from.AddDate(-1, 0, 0), to, nil); !errors.As(err, &field) || field.Field != "from" {
		t.Errorf("a year of minutes: %v", err)
	}

	// The slots are taken when their tasks have ended too, whatever became of them.
	for id := range w.rdb.HGetAll(ctx, w.q.Keys().Tasks).Val() {
		if strings.HasSuffix(id, backfillMark) {
			_, err := w.q.Cancel(ctx, id, "", false)
			must(t, err)
		}
	}
	if n, err := w.backfill(ctx, "s", from, to, nil); n != 0 || err != nil {
		t.Errorf("after their end: %d, %v", n, err)
	}
	if again, err := w.Backfill(ctx, "s", Backfilling{From: from, To: to, Again: true}); again != (Backfilled{Slots: 3, Added: 3}) || err != nil {
		t.Errorf("when asked: %+v, %v", again, err)
	}
	if again, err := w.Backfill(ctx, "s", Backfilling{From: from, To: to, Again: true}); again != (Backfilled{Slots: 3, Added: 0}) || err != nil {
		t.Errorf("while they wait: %+v, %v", again, err)
	}
	if n, err := w.backfill(ctx, "s", from, to, nil); n != 0 || err != nil {
		t.Errorf("after that: %d, %v", n, err)
	}
	if _, err := w.Apply(ctx, Schedule{Name: "c", Rule: schedule.Cron("0 * * * *", nil), Task: "job"}); err != nil {
		t.Fatal(err)
	}
	if n, err := w.backfill(ctx, "c", epoch, epoch.Add(3*time.Hour), nil); n != 4 || err != nil {
		t.Errorf("cron: %d, %v", n, err)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	last := queue.Last{Rev: 4, Anchor: epoch, Slot: sec(10), Runs: 11}
	text, err := (&definition{definitionHead{V: 1, Origin: Applied}, every(time.Second)}).encode()
	must(t, err)
	at := func(now float64, last queue.Last) Status {
		s, err := statusOf(queue.Stored{Name: "s", Definition: text, Last: last.String()}, sec(now))
		must(t, err)
		return s
	}
	if s := at(7.5, last); !s.Last.Equal(sec(7)) || !s.Next.Equal(sec(8)) || s.Runs != 8 || !s.Pushed.Equal(sec(10)) {
		t.Errorf("while slots lie ahead: %+v", s)
	}
	if s := at(30, last); !s.Last.Equal(sec(10)) || !s.Next.Equal(sec(31)) {
		t.Errorf("after nobody led: %+v", s)
	}
	last.Paused = true
	if s := at(30, last); !s.Next.IsZero() || !s.Paused {
		t.Errorf("paused: %+v", s)
	}
	if s, err := statusOf(queue.Stored{Name: "s", Definition: text}, epoch); err != nil || s.Schedule.Name != "s" || !s.Anchor.IsZero() {
		t.Errorf("without a last run: %+v, %v", s, err)
	}
}
