package outbox

import (
	"context"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// How many tasks a second come from the table to Redis, and how many go into it.
func BenchmarkThroughput(b *testing.B) {
	for name, url := range map[string]func() string{"sqlite": func() string { return onSQLite(b) }, "postgres": func() string { return testpostgres.Database(b) }} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, url(), testredis.Client(b))
			m := w.mover()
			const batch = 10_000
			var adding, moving time.Duration
			n := 0
			for b.Loop() {
				list := make([]*task.Task, batch)
				for i := range list {
					list[i] = task.New("job", map[string]int{"n": i}, task.Keep(-1))
				}
				began := time.Now()
				w.add(list...)
				added := time.Now()
				w.drain(m)
				adding, moving, n = adding+added.Sub(began), moving+time.Since(added), n+batch
				w.must(w.rdb.Del(context.Background(), w.keys.Tasks).Err())
			}
			b.ReportMetric(float64(n)/adding.Seconds(), "added/s")
			b.ReportMetric(float64(n)/moving.Seconds(), "moved/s")
		})
	}
}
