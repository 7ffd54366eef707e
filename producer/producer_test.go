package producer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestEnqueue_duplicates(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		w := newWorld(t, rdb)
		ctx := context.Background()
		id, err := w.p.Enqueue(ctx, task.New("job", nil))
		if err != nil || len(id) != 20 {
			t.Fatalf("%q, %v", id, err)
		}
		if id, err = w.p.Enqueue(ctx, task.New("job", nil), task.ID("mine")); id != "mine" || err != nil {
			t.Fatalf("%q, %v", id, err)
		}
		if id, err = w.p.Enqueue(ctx, task.New("job", nil), task.ID("mine")); id != "mine" || !errors.Is(err, task.ErrDuplicate) {
			t.Errorf("the same ID: %q, %v", id, err)
		}
		first, err := w.p.Enqueue(ctx, task.New("job", nil), task.Unique("inv-42", time.Hour))
		must(t, err)
		if id, err = w.p.Enqueue(ctx, task.New("job", nil), task.Unique("inv-42", time.Hour)); id != first || !errors.Is(err, task.ErrDuplicate) {
			t.Errorf("the same unique key: %q, %v; %q stands", id, err, first)
		}
		results, err := w.p.EnqueueAll(ctx, []*task.Task{task.New("job", nil, task.ID("a")), task.New("job", nil, task.ID("mine")), task.New("job", nil, task.ID("a"))})
		must(t, err)
		if len(results) != 3 || results[0].Err != nil || !errors.Is(results[1].Err, task.ErrDuplicate) || !errors.Is(results[2].Err, task.ErrDuplicate) {
			t.Errorf("%+v", results)
		}
	})
}

func TestEnqueueAll_refusesABatchWithABadTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Mini(t).Client)
	unfit := errors.New("unfit")
	w.p.cfg.Check = func(t *task.Task) error {
		if string(t.Payload) == "bad" {
			return unfit
		}
		return nil
	}
	_, err := w.p.EnqueueAll(t.Context(), []*task.Task{task.New("job", nil), task.New("a b", nil)})
	var batch *BatchError
	if !errors.As(err, &batch) || batch.Index != 1 || batch.Of != 2 || !errors.Is(err, task.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if _, err = w.p.Enqueue(t.Context(), task.New("job", []byte("bad"))); !errors.Is(err, unfit) || err.Error() != "unfit" {
		t.Errorf("%v", err)
	}
	if n := w.rdb.HLen(t.Context(), w.q.Keys().Tasks).Val(); n != 0 {
		t.Errorf("%d tasks were written", n)
	}
	var list []*task.Task
	for range 2500 {
		list = append(list, task.New("job", nil))
	}
	results, err := w.p.EnqueueAll(t.Context(), list)
	if err != nil || len(results) != 2500 || w.rdb.HLen(t.Context(), w.q.Keys().Tasks).Val() != 2500 {
		t.Errorf("%d results, %v", len(results), err)
	}
}

// failing fails the first few scripts, before or after Redis has run them.
type failing struct {
	dying
	left  atomic.Int32
	err   error
	calls atomic.Int32
	reach bool
}

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd) // the commands that begin a connection
		}
		f.calls.Add(1)
		if f.left.Add(-1) >= 0 {
			if f.reach {
				_ = next(ctx, cmd)
			}
			cmd.SetErr(f.err)
			return f.err
		}
		return next(ctx, cmd)
	}
}

type busyError string

func (e busyError) Error() string { return string(e) }
func (busyError) RedisError()     {}

func TestEnqueue_triesAgainOnlyWhatSurelyDidNotHappen(t *testing.T) {
	t.Parallel()
	lost := &net.OpError{Op: "read", Err: errors.New("connection reset")}
	dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for name, tt := range map[string]struct {
		err   error
		reach bool
		times int32
		want  error
		calls int32
	}{
		"a dial that failed":          {dial, false, 2, nil, 3},
		"redis is loading":            {busyError("LOADING Redis is loading"), false, 2, nil, 3},
		"a lost reply":                {lost, true, 1, task.ErrUnreachable, 1},
		"a dial that goes on failing": {dial, false, 1000, task.ErrUnreachable, tries + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := testredis.Namespace(t)
			w := worldIn(t, testredis.Real(t), ns)
			if _, err := w.p.Enqueue(t.Context(), task.New("job", nil)); err != nil { // the script is known
				t.Fatal(err)
			}
			f := &failing{err: tt.err, reach: tt.reach}
			f.left.Store(tt.times)
			f.life.Store(1 << 40)
			client := testredis.Client(t)
			client.AddHook(f)
			w = worldIn(t, client, ns)
			_, err := w.p.Enqueue(t.Context(), task.New("job", nil, task.ID("x")))
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if n := f.calls.Load(); n != tt.calls {
				t.Errorf("%d calls, want %d", n, tt.calls)
			}
			if tt.reach { // the same ID again tells
				if _, err := w.p.Enqueue(t.Context(), task.New("job", nil, task.ID("x"))); !errors.Is(err, task.ErrDuplicate) {
					t.Errorf("again: %v", err)
				}
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if w := newWorld(t, testredis.Mini(t).Client); w.p.again(ctx, dial, 0) {
		t.Error("tries again though the caller has gone")
	}
}

func ExampleProducer_EnqueueAll() {
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	p, err := New(rdb, "shop", Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	check := func(tasks ...*task.Task) {
		_, err := p.EnqueueAll(context.Background(), tasks)
		var bad *BatchError
		if errors.As(err, &bad) {
			fmt.Printf("nothing was added: number %d: %v\n", bad.Index, bad.Err)
		}
	}
	check(task.New("invoice.send", nil), task.New("no spaces", nil))
	// Output:
	// nothing was added: number 1: type "no spaces": has a character that a name cannot have (1 to 128 letters, digits or - _ . : / +)
}
