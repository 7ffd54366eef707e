//go:build unix

package producer

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
)

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Round(time.Millisecond)
}

// TestManySchedules measures one leader with 100,000 schedules: ONBEAT_TEST_MANY=100000 go test -run ManySchedules -v
func TestManySchedules(t *testing.T) {
	many, _ := strconv.Atoi(os.Getenv("ONBEAT_TEST_MANY"))
	if many == 0 {
		t.Skip("ONBEAT_TEST_MANY is not set")
	}
	srv := testredis.Private(t)
	w := worldIn(t, srv.Client(func(o *redis.Options) { o.ReadTimeout = 30 * time.Second }), "many")
	ctx := context.Background()
	list := make([]Schedule, many)
	for i := range list {
		list[i] = Schedule{
			Name: fmt.Sprintf("schedule-%06d", i), Task: "job", Payload: []byte(`{"customer":123456,"kind":"daily"}`),
			Rule: schedule.Rule{Every: time.Minute, Start: epoch.Add(time.Duration(i%60_000) * time.Millisecond).Format(time.RFC3339Nano)},
		}
	}
	start := time.Now()
	tn := w.lead("one", "v1", func() []Schedule { return list })
	tn.cfg.Horizon = 10 * time.Second
	must(t, tn.takeStock(ctx))
	t.Logf("declared %d in %v", many, time.Since(start))
	must(t, tn.push(ctx))

	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	start = time.Now()
	two := w.lead("two", "v1", nil)
	two.cfg.Horizon = 10 * time.Second
	must(t, two.takeStock(ctx))
	must(t, two.push(ctx))
	t.Logf("took over %d schedules in %v", many, time.Since(start))
	t.Logf("the leader holds %.1f MB, %d bytes a schedule", float64(heap()-before)/1e6, (heap()-before)/uint64(many))
	for what, declares := range map[string]func() []Schedule{"which declares none": nil, "which declares the same": func() []Schedule { return list }} {
		for i := range 3 {
			next, cpu, start := w.lead(fmt.Sprintf("%d %s", i, what), "v2", declares), cpuTime(), time.Now()
			must(t, next.takeStock(ctx))
			t.Logf("a leader %s took stock in %v, with %v of CPU", what, time.Since(start).Round(time.Millisecond), cpuTime()-cpu)
			two.term = next.term
		}
	}

	commands := func() int64 {
		for _, line := range strings.Split(w.rdb.Info(ctx, "stats").Val(), "\r\n") {
			if n, ok := strings.CutPrefix(line, "total_commands_processed:"); ok {
				v, _ := strconv.ParseInt(n, 10, 64)
				return v
			}
		}
		return 0
	}
	first, calls := commands(), 0
	began := time.Now()
	for time.Since(began) < 20*time.Second {
		time.Sleep(two.wait())
		must(t, two.push(ctx))
		calls++
	}
	t.Logf("%d pushes in %v, %.0f commands a second (those inside of scripts included)", calls, time.Since(began).Round(time.Second),
		float64(commands()-first)/time.Since(began).Seconds())
	if n := w.rdb.HLen(ctx, w.q.Keys().Tasks).Val(); n < int64(many/4) {
		t.Errorf("%d slots were pushed", n)
	}
	runtime.KeepAlive(two)
}
