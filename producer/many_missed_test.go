package producer

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
)

// TestManyMissed measures a leader after an hour without an instance, with many schedules of a slot a second that catch up:
// ONBEAT_TEST_MISSED=60 go test -run ManyMissed -v
func TestManyMissed(t *testing.T) {
	many, _ := strconv.Atoi(os.Getenv("ONBEAT_TEST_MISSED"))
	if many == 0 {
		t.Skip("ONBEAT_TEST_MISSED is not set")
	}
	srv := testredis.Private(t)
	w := worldIn(t, srv.Client(func(o *redis.Options) { o.ReadTimeout = 30 * time.Second }), "missed")
	ctx := context.Background()
	list := make([]Schedule, many)
	for i := range list {
		list[i] = Schedule{
			Name: fmt.Sprintf("schedule-%06d", i), Task: "job", Payload: []byte(`{"customer":123456,"kind":"daily"}`),
			Rule: schedule.Rule{Every: time.Second, Missed: schedule.MissedAll},
		}
		_, err := w.Apply(ctx, list[i])
		must(t, err)
		last := w.entry(list[i].Name).last
		last.Anchor = last.Anchor.Add(-time.Hour)
		last.Slot, last.Runs = last.Anchor, 1
		must(t, w.rdb.HSet(ctx, w.q.Keys().Last, list[i].Name, last.String()).Err())
	}
	start := time.Now()
	tn := w.lead("one", "v1", nil)
	tn.cfg.Horizon = 10 * time.Second
	must(t, tn.takeStock(ctx))
	t.Logf("%d slots were missed: the gate is open after %v", many*3600, time.Since(start))
	must(t, tn.push(ctx))
	t.Logf("what is on time is pushed after %v", time.Since(start))
	longest := time.Duration(0)
	for w.rdb.ZCard(ctx, w.q.Keys().Due(queue.Lane{Queue: "default", Priority: -1, Type: "job"})).Val() < int64(many*3500) && time.Since(start) < 50*time.Second {
		time.Sleep(tn.wait())
		at := time.Now()
		must(t, tn.push(ctx))
		longest = max(longest, time.Since(at))
	}
	t.Logf("all is pushed after %v; the longest push took %v", time.Since(start), longest)
}
