package producer

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
)

// afterwards is called after each command of a client.
type afterwards func(args []any)

func (f afterwards) DialHook(next redis.DialHook) redis.DialHook { return next }
func (f afterwards) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (f afterwards) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer f(cmd.Args())
		return next(ctx, cmd)
	}
}

func (w *world) wantAnchor(name string, want time.Time) {
	w.Helper()
	if e := w.entry(name); !e.last.Anchor.Equal(want) {
		w.Errorf("%s is on a new grid, from %v; it was from %v", name, e.last.Anchor, want)
	}
}

// Redis came back empty, and does so again when its schedules have just been restored: before the new term has read them.
func TestRestore_whenRedisIsLostAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, mini *testredis.Miniredis, w *world) {
		w.apply("hand", schedule.Every(100*time.Millisecond))
		rdb := mini.Dialed(t)
		losses := 3
		rdb.AddHook(afterwards(func(args []any) {
			if w.isChange(args) && mentions(args, "schedule restored") && losses > 0 {
				losses--
				mini.FlushAll()
			}
		}))
		n := w.startOver(rdb, "v1", declare("mine"))
		w.leads(n)
		time.Sleep(10 * time.Second)
		hand, mine := w.entry("hand").last.Anchor, w.entry("mine").last.Anchor
		mini.FlushAll()
		time.Sleep(30 * time.Second)
		if losses > 0 {
			t.Fatalf("it was to be lost %d times more", losses)
		}
		w.leads(n)
		w.wantAnchor("hand", hand)
		w.wantAnchor("mine", mine)
		w.goesOn("hand")
		n.stop()
	})
}

// The schedules are declared again just when Redis was lost: the leader does not forget the known ones for an empty Redis.
func TestRestore_whenItDeclaresInAnEmptyRedis(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply("hand", schedule.Every(time.Hour))
		tn := w.lead("one", "v1", declare("mine"))
		must(t, tn.insist(ctx, tn.takeStock))
		hand, mine := w.entry("hand").last.Anchor, w.entry("mine").last.Anchor
		time.Sleep(time.Minute - time.Second)
		w.forget()
		err := tn.insist(ctx, tn.takeStock)
		if err == nil {
			t.Fatal("it declares though its term is lost")
		}
		tn.remember(ctx, tn, err)
		next := w.lead("one", "v1", declare("mine"))
		next.before = tn.memory
		must(t, next.insist(ctx, next.takeStock))
		w.wantAnchor("hand", hand)
		w.wantAnchor("mine", mine)
	})
}

// A schedule that is there by half, or that comes and goes while all are read, does not keep the leader reading.
func TestDeclare_isNotHeldUpByOneThatIsThereByHalf(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply("half", schedule.Every(time.Second))
		w.apply("whole", schedule.Every(time.Second))
		tn := w.lead("one", "v1", declare("mine"))
		must(t, tn.insist(ctx, tn.takeStock))
		w.apply("whole", schedule.Every(2*time.Second))
		must(t, w.rdb.HDel(ctx, w.q.Keys().Schedules, "half").Err())
		attempt, stop := context.WithCancel(ctx)
		defer stop()
		reads := 0
		w.rdb.AddHook(afterwards(func(args []any) {
			if args[0] == "hscan" {
				if reads++; reads > 20 {
					stop()
				}
			}
		}))
		must(t, tn.takeStock(attempt))
		if reads > 6 {
			t.Errorf("it read all %d times", reads/2)
		}
	})
}

// Reading the schedules again fails half way, and Redis is empty when it is back: the earlier knowledge counts.
func TestRestore_whenTakingStockWasInterrupted(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		w := newWorld(t, rdb)
		w.apply("s", schedule.Every(time.Hour))
		through := redis.NewClient(rdb.Options())
		defer through.Close()
		fail := false
		through.AddHook(between(func(args []any) error {
			if fail && args[0] == "hscan" {
				return context.DeadlineExceeded
			}
			return nil
		}))
		over := worldIn(t, through, w.ns)
		tn := over.lead("one", "v1", nil)
		must(t, tn.takeStock(ctx))
		anchor := w.entry("s").last.Anchor
		fail = true
		err := tn.takeStock(ctx)
		if err == nil {
			t.Fatal("nothing was interrupted")
		}
		tn.remember(ctx, tn, err)
		fail = false
		w.forget()
		next := over.lead("one", "v1", nil)
		next.before = tn.memory
		must(t, next.takeStock(ctx))
		w.wantAnchor("s", anchor)
	})
}

// A Redis that came back empty and is full at once keeps the gate shut no longer than any other; when it has room, the
// schedules come back on their grids.
func TestRestore_whenRedisIsFull(t *testing.T) {
	inBubble(t, func(t *testing.T, mini *testredis.Miniredis, w *world) {
		w.apply("hand", schedule.Every(100*time.Millisecond))
		rdb := mini.Dialed(t)
		var full atomic.Bool
		rdb.AddHook(between(func(args []any) error {
			if full.Load() && (w.isChange(args) || w.isAdvance(args)) {
				return refusal("OOM command not allowed when used memory > 'maxmemory'.")
			}
			return nil
		}))
		n := w.startOver(rdb, "v1", declare("mine"))
		w.leads(n)
		time.Sleep(10 * time.Second)
		hand, mine := w.entry("hand").last.Anchor, w.entry("mine").last.Anchor
		full.Store(true)
		mini.FlushAll()
		time.Sleep(5 * time.Second)
		w.leads(n) // it waits for the gate
		time.Sleep(time.Minute)
		full.Store(false)
		time.Sleep(32 * time.Second)
		w.wantAnchor("hand", hand)
		w.wantAnchor("mine", mine)
		w.goesOn("hand")
		n.stop()
	})
}
