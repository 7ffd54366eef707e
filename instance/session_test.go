package instance

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestLead_runsOncePerTermOneAfterTheOther(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		s := r.node(Config{ID: "a"}).session()
		type step struct {
			epoch int64
			at    string
		}
		steps := make(chan step, 100)
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			s.Lead(func(ctx context.Context, term queue.Term) {
				steps <- step{term.Epoch, "begins"}
				<-ctx.Done()
				time.Sleep(3 * time.Second) // slow to return: the next term waits
				steps <- step{term.Epoch, "ends"}
			})
		}()
		var epochs []int64
		for range 3 {
			began := wait(t, steps, "term")
			b := r.up("b", "")
			r.leave(b) // a leads again at once
			ended := wait(t, steps, "end of the term")
			if began.at != "begins" || ended != (step{began.epoch, "ends"}) {
				t.Fatalf("%v then %v", began, ended)
			}
			epochs = append(epochs, began.epoch)
		}
		if !rising(epochs) {
			t.Fatalf("epochs %v do not rise", epochs)
		}
		s.resign()
		s.drain()
		wait(t, returned, "return of Lead")
		s.end(ErrLeft)
	})
}

func TestLead_isCalledAgainWhileTheTermLives(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		other, line := r.other(mini)
		n := other.node(Config{ID: "a"})
		s := n.session()
		type begun struct {
			queue.Term
			calls int // that Redis has answered
		}
		terms := make(chan begun, 1000)
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			s.Lead(func(_ context.Context, term queue.Term) { terms <- begun{term, line.count()} })
		}()
		first := wait(t, terms, "term")
		second := wait(t, terms, "the same term again")
		if second.Term != first.Term || second.calls == first.calls {
			t.Fatalf("%+v, and then %+v: nobody asked whether it still leads", first, second)
		}
		time.Sleep(time.Minute)
		if n := len(terms); n < 50 || n > 130 {
			t.Fatalf("called %d times in a minute", n)
		}
		b := r.up("b", "")
		time.Sleep(2 * time.Second)
		r.idles(b) // else it shows no sign of life, and a leads again
		for len(terms) > 0 {
			<-terms
		}
		time.Sleep(30 * time.Second)
		if len(terms) != 0 {
			t.Fatal("called though another leads")
		}
		r.leave(b)
		if next := wait(t, terms, "next term"); next.Epoch <= first.Epoch {
			t.Fatalf("epoch %d after %d", next.Epoch, first.Epoch)
		}
		must(t, n.leave())
		wait(t, returned, "return of Lead")
	})
}

// A machine that was suspended wakes up, and Redis does not answer yet: its timers have not moved, and yet the lease is
// over. While Redis answers, a wall clock that was set changes nothing.
func TestTrust_endsByTheWallClockWhenRedisDoesNotAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		other, line := r.other(mini)
		s := other.node(Config{ID: "a"}).session()
		var ahead atomic.Int64
		s.mu.Lock()
		s.wall = func() time.Time { return time.Now().Round(0).Add(time.Duration(ahead.Load())) }
		s.mu.Unlock()
		ahead.Store(int64(time.Hour))
		time.Sleep(time.Minute)
		if s.Context().Err() != nil {
			t.Fatal("the clock was set, and the lease is lost")
		}
		line.hold(t)
		began := time.Now()
		wantCause(t, cause(t, s.Context()), ErrLeaseLost)
		if took := time.Since(began); took > 2*time.Second+100*time.Millisecond {
			t.Fatalf("the lease was trusted for %v more, want two heartbeats at most", took)
		}
		line.release()
	})
}

func TestDoubt_asksAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		other, line := r.other(mini)
		s := other.node(Config{ID: "a", Lease: time.Hour}).session()
		time.Sleep(time.Minute)
		before := line.count()
		s.Doubt()
		s.Doubt()
		time.Sleep(time.Millisecond)
		if n := line.count() - before; n < 1 || n > 2 {
			t.Fatalf("%d calls after a doubt", n)
		}
	})
}

func TestWork_ringsForWhatAMessageSays(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		s := r.node(Config{ID: "a", Lease: time.Hour}).session()
		quiet := func() {
			time.Sleep(time.Minute)
			for _, b := range []Bell{s.Work, s.Schedules} {
				select {
				case <-b:
				default:
				}
			}
			s.TakeWake()
		}
		say := func(channel, text string) {
			t.Helper()
			must(t, r.rdb.Publish(t.Context(), channel, text).Err())
		}
		k := r.q.Keys()
		quiet()
		if _, ok := s.TakeWake(); ok {
			t.Fatal("a wake-up without a message")
		}
		say(k.WakeOf("b"), "5")
		say(k.WakeOf("a"), "nonsense")
		say(k.WakeOf("a"), "946684860500")
		say(k.WakeOf("a"), "946684860250")
		say(k.WakeOf("a"), "946684860750")
		time.Sleep(time.Millisecond)
		wait(t, s.Work, "ring")
		if at, ok := s.TakeWake(); !ok || at.UnixMilli() != 946684860250 {
			t.Fatalf("woken for %v, want the earliest", at)
		}
		if _, ok := s.TakeWake(); ok {
			t.Fatal("the same wake-up twice")
		}
		for _, text := range []string{"lanes", "leader"} {
			quiet()
			say(k.Wake, text)
			time.Sleep(time.Millisecond)
			wait(t, s.Work, "ring for "+text)
			if at, ok := s.TakeWake(); !ok || !at.IsZero() {
				t.Fatalf("%s: woken for %v, %v; want now", text, at, ok)
			}
		}
		quiet()
		say(k.Wake, "schedules")
		wait(t, s.Schedules, "ring for schedules")
	})
}

func TestWork_ringsForWhatAHeartbeatFinds(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		s := r.node(Config{ID: "a"}).session()
		time.Sleep(10 * time.Second)
		s.TakeWake()
		wait(t, s.Work, "first ring")
		meta := r.q.Keys().Meta

		must(t, r.rdb.HSet(t.Context(), meta, "schedules", 7).Err()) // no message tells
		<-s.Schedules
		wait(t, s.Schedules, "ring for a schedule whose message was lost")

		must(t, r.rdb.HSet(t.Context(), meta, "lanes", 7).Err())
		wait(t, s.Work, "ring for a lane")
		s.TakeWake()
		must(t, r.rdb.ZAdd(t.Context(), r.q.Keys().Watch, z("b", time.Now().Add(-time.Second))).Err())
		wait(t, s.Work, "ring for due work that another overslept")
	})
}

func TestOnCancel_isToldByMessageAndByHeartbeat(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		s := r.node(Config{ID: "a"}).session()
		time.Sleep(10 * time.Second)
		told := make(chan Cancel, 100)
		ask := func(target, value string) {
			t.Helper()
			must(t, r.rdb.HSet(t.Context(), r.q.Keys().Cancel, target, value).Err())
		}
		ask("x", "5 1 not needed any more")
		must(t, r.rdb.Publish(t.Context(), r.q.Keys().Wake, "cancel").Err())
		time.Sleep(time.Millisecond) // the subscription does not exist yet
		s.OnCancel(func(c Cancel) { told <- c })
		want := Cancel{Task: "x", Fence: 5, Reason: "not needed any more"}
		if got := wait(t, told, "request by heartbeat"); got != want {
			t.Fatalf("told %+v, want %+v", got, want)
		}
		must(t, r.rdb.Del(t.Context(), r.q.Keys().Cancel).Err())
		time.Sleep(time.Minute)
		for len(told) > 0 {
			<-told
		}
		ask("k:y", "9 1 replaced")
		began := time.Now()
		must(t, r.rdb.Publish(t.Context(), r.q.Keys().Wake, "cancel").Err())
		got := wait(t, told, "request by message")
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Fatalf("told after %v", took)
		}
		for _, c := range []struct {
			id, key string
			fence   int64
			want    bool
		}{
			{"z", "y", 9, true}, {"z", "y", 10, false}, {"z", "", 9, false}, {"k:y", "", 8, false},
		} {
			if covers := got.Covers(c.id, c.key, c.fence); covers != c.want {
				t.Errorf("%+v covers %+v: %v", got, c, covers)
			}
		}
	})
}

// No other instance notices when an instance that does not lead becomes ready. The reply to its own call says that it may
// claim, and so does each heartbeat.
func TestWork_ringsWhenTheInstanceMayTakeWork(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		a := r.up("a", "", consume(ConsumeAll))
		r.open(a)
		s := r.node(Config{ID: "b", Standby: true, MinReady: 10500 * time.Millisecond}).session()
		time.Sleep(10 * time.Second)
		s.TakeWake()
		wait(t, s.Work, "first ring")
		if s.View().May {
			t.Fatal("it may take work before it is ready")
		}
		began := time.Now()
		wait(t, s.Work, "ring when it is ready")
		if took := time.Since(began); took > 600*time.Millisecond || !s.View().May {
			t.Fatalf("it rang after %v, may take work: %v", took, s.View().May)
		}
		s.TakeWake()
		time.Sleep(10 * time.Second)
		if _, rang := s.TakeWake(); rang {
			t.Fatal("it rang again, and nothing has changed")
		}
		s.Refused() // it was told no before, and hears of it later
		wait(t, s.Work, "ring after a refusal")
	})
}
