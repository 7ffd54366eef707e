package audit

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// A loss affects slots up to the moment at which it was noticed. A slot that was noted after the last write that Redis kept
// may have run once more. A slot that was missed while Redis is known to have lived may have run after all. A slot that was
// settled in vain did run once more.
func TestJudge_marksWhatALossMayHaveRepeated(t *testing.T) {
	t.Parallel()
	loss := Loss{From: at(10), Known: at(13), Until: at(15), Found: at(15)}
	in := question{input: input{
		Schedule: "beat", Periods: []period{every(t, time.Second, t0)}, From: t0, To: at(20), Settled: at(20),
		Losses: []Loss{loss}, Void: []time.Time{at(3), at(3.5)},
	}}
	var list []history.Note
	add := func(noted float64, line string) {
		n := notes(t, line)[0]
		n.At = at(noted)
		list = append(list, n)
	}
	for _, s := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8"} {
		add(9, "beat@{"+s+"} done 1 {"+s+".01}")
	}
	add(16, "beat@{9} done 1 {15.9}") // due before, and noted after: it may have run in between
	add(16, "beat@{10} done 1 {10.01}")
	add(16, "beat@{11}..{14} missed 4 policy skip")
	for _, s := range []string{"15", "16", "17", "18"} {
		add(19, "beat@{"+s+"} done 1 {"+s+".01}")
	}
	in.notes = func(yield func(history.Note) bool) {
		for _, n := range list {
			if !yield(n) {
				return
			}
		}
	}
	r := judge(in)
	for v, want := range map[Verdict]int64{Unknown: 3, Missed: 1, OnTime: 14, Late: 1} {
		if got := r.Counts[v]; got != want {
			t.Errorf("%s: %d, want %d", v, got, want)
		}
	}
	if want := int64(1 + 1 + 1 + 3 + 1); r.Repeated != want { // 3, 9, 10, 11 to 13, 15
		t.Errorf("possibly repeated: %d, want %d", r.Repeated, want)
	}
}

// Each instance reports the writes that Redis acknowledged to it and no longer has. Reports that overlap are one loss.
func TestLosses_thatOverlapAreOne(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		q, err := queue.New(rdb, queue.Partition{Namespace: testredis.Namespace(t)}, queue.Caps{})
		if err != nil {
			t.Fatal(err)
		}
		now, err := q.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ago := func(ms int64) int64 { return now.UnixMilli() - ms }
		for _, e := range [][2]int64{{ago(900), ago(500)}, {ago(800), ago(300)}} {
			if err := rdb.XAdd(ctx, &redis.XAddArgs{Stream: q.Keys().Events, Values: []any{"event", "lost writes", "kept", e[0], "known", e[1]}}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		list, err := auditorOf(t, q).Losses(ctx, time.Minute)
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %v; want one", list, err)
		}
		l := list[0]
		if l.From.UnixMilli() != ago(900) || l.Known.UnixMilli() != ago(300) || l.Until.Before(now.Truncate(time.Millisecond)) || !l.Found.Equal(l.Until) {
			t.Errorf("%+v, want from %d, known to %d, until it was found", l, ago(900), ago(300))
		}
	})
}

// Slots that were settled in vain are named by the event.
func TestVoid_isNamed(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		q, err := queue.New(rdb, queue.Partition{Namespace: testredis.Namespace(t)}, queue.Caps{})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.SettledInVain(ctx, "one", []string{"beat@1700000000000", "a task", "b@1700000001000"}); err != nil {
			t.Fatal(err)
		}
		events, err := q.Events(ctx, time.Unix(0, 0), 10)
		if err != nil || len(events) != 1 {
			t.Fatalf("%v, %v", events, err)
		}
		if got := events[0].Void(); len(got) != 2 || got[0] != "beat@1700000000000" || got[1] != "b@1700000001000" || events[0].Fields["tasks"] != "3" {
			t.Errorf("%v of %v", got, events[0])
		}
	})
}

func auditorOf(t *testing.T, q *queue.Queue) *Auditor {
	t.Helper()
	r, err := New(q.Client(), q.Namespace(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
