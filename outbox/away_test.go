package outbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// While one partition is away, whichever, the mover moves the rows of the other one, and keeps those of the first.
func TestMove_aPartitionIsAway(t *testing.T) {
	t.Parallel()
	for away := range 2 {
		t.Run(fmt.Sprint(away+1), func(t *testing.T) {
			t.Parallel()
			rdb := testredis.Client(t)
			w := newWorld(t, onSQLite(t), rdb)
			gone := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
			defer gone.Close()
			var parts []Part
			var well *queue.Queue
			for i := range 2 {
				at := rdb
				if i == away {
					at = gone
				}
				q, err := queue.New(at, queue.Partition{Namespace: w.ns, Number: i + 1}, queue.Caps{})
				w.must(err)
				p, err := producer.New(q.Client(), w.ns, producer.Config{})
				w.must(err)
				parts = append(parts, Part{Redis: q.Client(), Producer: p})
				if i != away {
					well = q
				}
			}
			w.run(w.mover(func(c *MoverConfig) {
				c.Redis, c.Producer, c.Parts = parts[0].Redis, parts[0].Producer, parts
				c.Where = func(x *task.Task) (int, error) {
					if strings.HasPrefix(x.ID, "away") {
						return away + 1, nil
					}
					return 2 - away, nil
				}
			}))
			for i := range 5 {
				w.add(task.New("job", nil, task.ID(fmt.Sprint("away", i))), task.New("job", nil, task.ID(fmt.Sprint("well", i))))
				testredis.Eventually(t, patience, func() bool {
					return well.Client().HExists(t.Context(), well.Keys().Tasks, fmt.Sprint("well", i)).Val()
				}, "row %d of the other partition moves", i)
			}
			testredis.Eventually(t, patience, func() bool {
				var rows int
				w.must(w.db.QueryRowContext(t.Context(), "SELECT count(*) FROM onbeat_outbox").Scan(&rows))
				return rows == 5
			}, "the five rows of the partition that is away are left")
		})
	}
}
