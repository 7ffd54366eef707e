package queue_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestChangeNotices_isForTheLeaderThatReadTheText(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		ctx := t.Context()
		w.must(w.q.ChangeNotices(ctx, a.term(), queue.NoticeChange{Name: "w", Set: map[string]string{"w": "1", "x": "y"}}))
		if ttl := rdb.PTTL(ctx, w.keys.Notices).Val(); ttl < 29*24*time.Hour {
			t.Errorf("kept for %v", ttl)
		}
		if err := w.q.ChangeNotices(ctx, a.term(), queue.NoticeChange{Name: "w", Set: map[string]string{"w": "2"}}); !errors.Is(err, task.ErrChanged) {
			t.Errorf("another text: %v", err)
		}
		w.must(w.q.ChangeNotices(ctx, a.term(), queue.NoticeChange{Name: "w", Was: "1", Set: map[string]string{"w": "2"}, Remove: []string{"x"}}))
		b := w.join("b")
		if err := w.q.ChangeNotices(ctx, a.term(), queue.NoticeChange{Name: "w", Was: "2"}); !errors.Is(err, queue.ErrNotLeader) {
			t.Errorf("not the leader: %v", err)
		}
		gone := b.term()
		gone.Gen++
		if err := w.q.ChangeNotices(ctx, gone, queue.NoticeChange{Name: "w", Was: "2"}); !errors.Is(err, queue.ErrFenced) {
			t.Errorf("fenced: %v", err)
		}
		all, err := w.q.Notices(ctx)
		w.must(err)
		if len(all) != 1 || all["w"] != "2" {
			t.Errorf("%v", all)
		}
	})
}

func TestEnds_areThoseOfTheStreams(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		ids := w.noteRuns(5)
		ends, err := w.q.Ends(t.Context())
		w.must(err)
		if ends.Entry != ids[4] || ends.Run != "" {
			t.Errorf("%+v", ends)
		}
	})
}

func TestDiedBetween_pagesThroughWhatDied(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		const n = queue.MaxBatch + 10
		var dead []redis.Z
		for i := range n + 2 {
			dead = append(dead, redis.Z{Score: float64(1000 + i), Member: fmt.Sprintf("t%04d", i)})
		}
		w.must(rdb.ZAdd(t.Context(), w.keys.Dead, dead...).Err())
		list, err := w.q.DiedBetween(t.Context(), time.UnixMilli(1001), time.UnixMilli(1001+n))
		w.must(err)
		if len(list) != n || list[0].ID != "t0001" || list[n-1].ID != fmt.Sprintf("t%04d", n) || list[0].At.UnixMilli() != 1001 {
			t.Errorf("%d: %v to %v", len(list), list[0], list[len(list)-1])
		}
		found, err := w.q.Records(t.Context(), []string{"t0001"})
		if err != nil || len(found) != 0 {
			t.Errorf("%v, %v", found, err)
		}
	})
}
