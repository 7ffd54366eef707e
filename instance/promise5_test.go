package instance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// While instance after instance becomes ready, all the earlier ones claim as fast as they can. From the moment that
// Ready has returned for one, no cycle that begins at an older one may claim.
func TestPromise5_onceReadyNoOlderInstanceClaims(t *testing.T) {
	t.Parallel()
	for _, rule := range []Consume{ConsumeNewest, ConsumeRelease} {
		t.Run(string(rule), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, testredis.Real(t))
			const rounds = 12
			var late member          // of the release before, started again in the middle of the rollout
			var release atomic.Int64 // the newest that is ready
			release.Store(-1)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var claimers sync.WaitGroup
			var claimed [rounds]atomic.Int64

			for round := range rounds {
				a, b := r.pair(round, rule)
				r.ready(a)
				r.ready(b)
				release.Store(int64(round))
				if round > 0 {
					late = r.up(fmt.Sprint("late", round), fmt.Sprint("v", round-1), consume(rule))
				}
				if round == 0 {
					r.open(b)
				}
				for _, m := range []member{a, b} {
					claimers.Go(func() {
						for seq := int64(1); ctx.Err() == nil; seq++ {
							before := release.Load()
							reply, err := r.q.Cycle(ctx, &queue.CycleRequest{
								Instance: m.id, Gen: m.gen, Seq: seq, Want: 1, Lanes: []queue.LaneClaim{{Lane: lane}},
							})
							if err != nil {
								if ctx.Err() == nil {
									t.Error(err)
								}
								return
							}
							n := int64(len(reply.Claimed))
							claimed[round].Add(n)
							older := int64(round) < before || rule == ConsumeNewest && m == a && before >= int64(round)
							if older && n > 0 {
								t.Errorf("%s claimed after release %d was ready", m.id, before)
								return
							}
						}
					})
				}
				r.flood(fmt.Sprint("r", round), 200)
				if round > 0 {
					r.wantClaims(late, 0)
				}
				testredis.Eventually(t, testTimeout, func() bool { return claimed[round].Load() > 20 }, "round %d claims", round)
			}
			stop()
			claimers.Wait()
		})
	}
}

// pair registers two instances of a new release.
func (r *rig) pair(round int, rule Consume) (a, b member) {
	r.Helper()
	release := fmt.Sprint("v", round)
	return r.join(fmt.Sprint("a", round), release, consume(rule)), r.join(fmt.Sprint("b", round), release, consume(rule))
}

func (r *rig) flood(prefix string, n int) {
	r.Helper()
	list := make([]*task.Task, n)
	for i := range list {
		list[i] = &task.Task{ID: fmt.Sprint(prefix, "-", i), Type: lane.Type}
	}
	refused, _, err := r.q.Enqueue(context.Background(), list, false)
	must(r, errors.Join(append(refused, err)...))
}
