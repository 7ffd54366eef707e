package notify

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/testredis"
)

// The archiver drops runs of other tasks that are archived. The next leader has to read those of the open window again.
func TestNotifier_runsOfTheOpenWindowStayForTheNextLeader(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	w := newWorld(t, rdb)
	target := ops
	target.Window, target.On = 5*time.Second, []Topic{Failing}
	must(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: w.q.Keys().Runs, Values: []any{"tasks", "t done 1 1", "facts", "mail default 0"}}).Err())
	a := w.lead("a", target)
	a.turn() // so that the rest comes in one window
	pipe := rdb.Pipeline()
	for i := range 1000 {
		pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: w.q.Keys().Runs, Values: []any{"tasks", fmt.Sprintf("t%d failed 1 %d", i, time.Now().UnixMilli()), "facts", "mail default 0"}})
	}
	_, err := pipe.Exec(t.Context())
	must(t, err)
	a.see()
	runs, err := w.q.RunsTail(t.Context(), "", 0)
	must(t, err)
	_, err = w.q.TrimRuns(t.Context(), runs.Stream, a.RunsFrom())
	must(t, err)

	b := w.lead("b", target)
	b.turn()
	w.same("ops shop: 1 schedule or type fails again and again")

	testredis.Eventually(t, 30*time.Second, func() bool {
		b.turn()
		runs, err = w.q.RunsTail(t.Context(), "", 0)
		must(t, err)
		_, err = w.q.TrimRuns(t.Context(), runs.Stream, b.RunsFrom())
		must(t, err)
		return rdb.XLen(t.Context(), w.q.Keys().Runs).Val() < 300
	}, "what no leader reads again goes")
}
