package instance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// A Redis that lost its last writes in a failover may give an epoch back that it had taken away.
func TestLead_inAnEpochThatComesBack(t *testing.T) {
	t.Parallel()
	s := newSession("a", 1, "")
	s.trust(time.Now().Add(time.Hour))
	terms := make(chan int64, 10)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		s.Lead(func(ctx context.Context, term queue.Term) {
			terms <- term.Epoch
			<-ctx.Done()
		})
	}()
	s.see(View{Leader: "a", LeaderGen: 1, Epoch: 5})
	wait(t, terms, "term")
	s.see(View{Leader: "b", LeaderGen: 2, Epoch: 6})
	s.see(View{Leader: "a", LeaderGen: 1, Epoch: 5})
	if e := wait(t, terms, "term again"); e != 5 {
		t.Errorf("epoch %d", e)
	}
	s.end(ErrLeft)
	wait(t, returned, "return of Lead")
}

// The same may lose that an instance was ready, or draining: it says so again.
func TestKeep_saysItsStateAgain(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	r := rigOf(t, srv.Client(), "ns")
	n := r.node(Config{Lease: time.Minute})
	lead := leading(n.session())
	wait(t, lead.began, "term")
	ctx, k := context.Background(), r.q.Keys()
	testredis.Eventually(t, testTimeout, func() bool { return r.rdb.PubSubNumSub(ctx, k.Wake).Val()[k.Wake] == 1 }, "it listens")
	member := r.rdb.HGet(ctx, k.Members, n.m.ID()).Val()
	must(t, r.rdb.HSet(ctx, k.Members, n.m.ID(), strings.Replace(member, " r ", " s ", 1)).Err())
	must(t, r.rdb.HSet(ctx, k.Leader, "id", "", "gen", "0").Err())
	must(t, r.rdb.Do(ctx, "client", "kill", "type", "pubsub").Err())
	wait(t, lead.began, "term again")
	must(t, n.leave())
}
