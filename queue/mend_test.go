package queue_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/testredis"
)

// A key that something else has made one of another type is set aside, whole, and what needs it goes on.
func TestMend_setsKeysOfAnotherTypeAside(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	w := newWorld(t, rdb)
	ctx := t.Context()
	a := w.join("a")
	w.add(jobs("x", 3)...)
	due := w.keys.Due(lane("job"))
	w.must(rdb.Set(ctx, due, "of somebody else", 0).Err())
	w.must(rdb.Del(ctx, w.keys.Lanes).Err()) // so that no list knows it
	w.must(rdb.Set(ctx, w.keys.Events, "not ours", 0).Err())
	w.must(rdb.Set(ctx, w.keys.Running(a.gen), "not ours", 0).Err())
	if strange, err := w.q.OfAnotherType(ctx); err != nil || len(strange) != 2 { // no list knows the due set
		t.Errorf("of another type: %v, %v", strange, err)
	}
	_, err := w.q.Cycle(ctx, a.request(3, lanesOf("job")))
	if !errors.Is(err, queue.ErrWrongType) {
		t.Fatalf("%v, want %v", err, queue.ErrWrongType)
	}
	aside, err := w.q.Mend(ctx, err)
	w.must(err)
	same(t, "set aside", len(aside), 3)
	kept := rdb.Keys(ctx, strings.NewReplacer("{", "\\{").Replace(w.part.Prefix())+"aside:*"+"job").Val()
	if len(kept) != 1 || rdb.Get(ctx, kept[0]).Val() != "of somebody else" || rdb.TTL(ctx, kept[0]).Val() <= 0 {
		t.Errorf("kept %q", kept)
	}
	if events, err := w.q.Events(ctx, w.now().Add(-1e9), 100); err != nil || len(events) != 3 {
		t.Errorf("events %v, %v", events, err)
	}
	w.add(jobs("y", 1)...)
	a.claim(1, lanesOf("job"))
	if aside, err := w.q.Mend(ctx, nil); err != nil || len(aside) > 0 {
		t.Errorf("set aside again: %v, %v", aside, err)
	}
}

// A list of lanes that was written over is found again by the due sets that there are.
func TestMend_findsTheLanes(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	w := newWorld(t, rdb)
	ctx := t.Context()
	w.add(jobs("x", 3)...)
	had, version, err := w.q.Lanes(ctx)
	w.must(err)
	w.must(rdb.Set(ctx, w.keys.Lanes, "x", 0).Err())
	aside, err := w.q.Mend(ctx, nil)
	w.must(err)
	equal(t, "set aside", aside, []string{w.keys.Lanes})
	lanes, now, err := w.q.Lanes(ctx)
	w.must(err)
	if len(lanes) != 1 || lanes[0] != had[0] || now <= version {
		t.Errorf("lanes %v, version %d after %d; want %v", lanes, now, version, had)
	}
}
