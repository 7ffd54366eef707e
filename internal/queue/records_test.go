package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// replies knows how many commands a client sent, and the most bytes of texts in one reply.
type replies struct {
	redis.Hook
	commands, most int
}

func (*replies) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *replies) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		r.saw(cmd)
		return err
	}
}

func (r *replies) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			r.saw(cmd)
		}
		return err
	}
}

func (r *replies) saw(cmd redis.Cmder) {
	r.commands++
	var texts []any
	switch c := cmd.(type) {
	case *redis.SliceCmd:
		texts = c.Val()
	case *redis.Cmd:
		texts, _ = c.Val().([]any)
	case interface{ Result() (any, error) }: // a script
		v, _ := c.Result()
		texts, _ = v.([]any)
	}
	size := 0
	for _, v := range texts {
		text, _ := v.(string)
		size += len(text)
	}
	r.most = max(r.most, size)
}

// watched is w through a client of its own, whose replies are looked at.
func (w *world) watched() (*world, *replies) {
	w.Helper()
	rdb := redis.NewClient(w.rdb.(*redis.Client).Options())
	w.Cleanup(func() { _ = rdb.Close() })
	r := &replies{}
	rdb.AddHook(r)
	return worldIn(w.TB, rdb, w.part.Namespace), r
}

const mega = 1 << 20

// stock adds n large tasks of each kind: dead ones, running ones, due ones, and ones that wait for their key.
func (w *world) stock(a *inst, n int) {
	w.Helper()
	kinds := []string{"dead", "runs", "waits"}
	for i := range n {
		for _, kind := range kinds {
			w.add(task.New(kind, make([]byte, mega), task.ID(fmt.Sprintf("%s%02d", kind, i)), task.At(ms(int64(i)))))
		}
	}
	for _, kind := range kinds[:2] {
		for claimed := 0; claimed < n; {
			list := a.cycle(n, lanesOf(kind)).Claimed
			claimed += len(list)
			for _, x := range list {
				if kind == "dead" {
					a.cycle(0, nil, queue.Settlement{ID: x.ID, Fence: x.Fence, Outcome: queue.Died, Record: queue.Rewrite(x)})
				}
			}
		}
	}
	w.add(keyed("first", "k", 1, task.Wait, 1))
	a.claim(1, lanesOf("job"))
	for i := range n {
		x := keyed(fmt.Sprintf("held%02d", i), "k", 1, task.Wait, int64(i))
		x.Type, x.Payload = "waits", make([]byte, mega)
		w.add(x)
	}
}

// A page of large tasks ends early, and Redis writes no large reply for it; the pages together have each task once.
func TestList_endsAPageOfLargeTasksEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	const n = 10
	w.stock(w.join("a"), n)
	w, seen := w.watched()
	for state, want := range map[task.State]int{task.Due: 2 * n, task.Running: n + 1, task.Dead: n} {
		for _, o := range []queue.ListOptions{{Limit: 1000}, {Limit: 1000, Key: "k"}} {
			var ids []string
			told := 0
			ctx := queue.Holding(t.Context(), func(bytes int) error { told = max(told, bytes); return nil })
			for more := true; more; more = o.After != "" {
				p, err := w.q.List(ctx, state, o)
				w.must(err)
				size := 0
				for _, f := range p.Tasks {
					size += len(f.Task.Payload)
				}
				if size >= queue.PageBytes+mega || p.Bytes < size || p.Bytes > told {
					t.Fatalf("%s: %d tasks, %d bytes of payloads, %d of records, %d were told", state, len(p.Tasks), size, p.Bytes, told)
				}
				ids = append(ids, foundIDs(p.Tasks)...)
				o.After = p.Next
			}
			slices.Sort(ids)
			if o.Key != "" {
				want = map[task.State]int{task.Due: n, task.Running: 1}[state]
			}
			same(t, fmt.Sprint(state, " ", o.Key, " ", len(ids)), len(slices.Compact(ids)), want)
		}
	}
	if seen.most > 3*mega {
		t.Errorf("a reply of %d bytes", seen.most)
	}
}

// The bytes that an answer has of other states count.
func TestList_countsWhatTheCallerHas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Mini(t).Client)
	for i := range 4 {
		w.add(task.New("job", make([]byte, mega), task.ID(fmt.Sprint(i))))
	}
	p, err := w.q.List(t.Context(), task.Due, queue.ListOptions{Had: queue.PageBytes - 2*mega})
	w.must(err)
	if len(p.Tasks) != 2 || p.Next == "" {
		t.Errorf("%d tasks", len(p.Tasks))
	}
	full := errors.New("full")
	ctx := queue.Holding(t.Context(), func(bytes int) error {
		if bytes > 2*mega {
			return full
		}
		return nil
	})
	if _, err := w.q.List(ctx, task.Due, queue.ListOptions{}); !errors.Is(err, full) {
		t.Errorf("the caller has no room: %v", err)
	}
}

// The common case costs what it did: one command reads the records of a page of small tasks.
func TestList_readsSmallRecordsAtOnce(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		w.add(jobs("j", 1000)...)
		w, seen := w.watched()
		p, err := w.q.List(t.Context(), task.Due, queue.ListOptions{Limit: 1000})
		w.must(err)
		same(t, "tasks", len(p.Tasks), 1000)
		before := seen.commands
		_, err = w.q.List(t.Context(), task.Due, queue.ListOptions{Limit: 1000})
		w.must(err)
		if n := seen.commands - before; n > 5 { // lanes, their lengths, a due set, records, held
			t.Errorf("%d commands for a page", n)
		}
	})
}

func TestRecords_ofLargeTasksComeInParts(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		const n = 4
		w.stock(a, n)
		w, seen := w.watched()
		ids := []string{"none"}
		for i := range n {
			ids = append(ids, fmt.Sprintf("dead%02d", i))
		}
		records, err := w.q.Records(t.Context(), ids)
		w.must(err)
		if len(records) != n || records["dead00"].Type != "dead" || records["dead00"].Payload != nil {
			t.Errorf("%d records, %+v", len(records), records["dead00"])
		}
		there, err := w.q.Exist(t.Context(), ids)
		w.must(err)
		if len(there) != n+1 || there[0] || !there[1] || !there[n] {
			t.Errorf("exist: %v", there)
		}
		claims, _, err := w.q.Claims(t.Context(), a.gen, "a")
		w.must(err)
		if len(claims) != n+1 {
			t.Errorf("%d claims", len(claims))
		}
		if seen.most > 3*mega {
			t.Errorf("a reply of %d bytes", seen.most)
		}
	})
}
