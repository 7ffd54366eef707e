package admin_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// Pages of the runs of all partitions are no longer than was asked, but for the rest of one millisecond, and have each run once.
func TestJoin_pagesOfRuns(t *testing.T) {
	t.Parallel()
	rdb, ns := testredis.Client(t), testredis.Namespace(t)
	a, _ := partsOn(t, ns, rdb, rdb, rdb)
	const each = 40
	for p := 1; p <= 3; p++ {
		history := queue.Partition{Namespace: ns, Number: p}.Keys().History
		for i := range each {
			err := rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: history, ID: fmt.Sprintf("%d-0", 1_000+i*p), Values: map[string]any{
				"runs": fmt.Sprintf("s%d@%d done 1 %d", p, i, 1_000+i*p), "gen": "7", "instance": "i", "release": "v1",
			}}).Err()
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, limit := range []int{1, 5, 20, 500} {
		seen := map[string]bool{}
		for after, pages := "", 0; ; pages++ {
			page, err := a.Schedules.Runs(t.Context(), "", limit, after)
			if err != nil || pages > 3*each {
				t.Fatal(pages, err)
			}
			if n := len(page.Items); n > limit+2 { // one of each partition may be of the last millisecond
				t.Errorf("limit %d: a page of %d", limit, n)
			}
			for _, r := range page.Items {
				if seen[r.Task] {
					t.Errorf("limit %d: %s twice", limit, r.Task)
				}
				seen[r.Task] = true
			}
			if after = page.Next; after == "" {
				break
			}
		}
		if len(seen) != 3*each {
			t.Errorf("limit %d: %d of %d runs", limit, len(seen), 3*each)
		}
	}
}
