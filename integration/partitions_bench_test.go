package integration

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// BenchmarkPartitions_primaries runs tasks that all lie on one primary of a cluster, on another, and on all three: the cost of a
// task for Redis and for the instance should not depend on it. For docs/scaling.md: go test -run - -bench primaries -benchtime 60000x .
func BenchmarkPartitions_primaries(b *testing.B) {
	const parts = 6
	c := testredis.Cluster(b)
	ns := testredis.Namespace(b)
	rdb, err := onbeat.Dial(c.URL())
	if err != nil {
		b.Fatal(err)
	}
	defer rdb.Close()
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: ns, Partitions: parts, Concurrency: 1000})
	if err != nil {
		b.Fatal(err)
	}
	var ran atomic.Int64
	if err := d.Handle("job", handlers.Func(func(context.Context, *task.Task) error { ran.Add(1); return nil })); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}()
	on := map[*testredis.Server][]int{} // the partitions of each primary
	for p := 1; p <= parts; p++ {
		node := c.Owner(b, fmt.Sprintf("onbeat:{%s#%d}:meta", ns, p))
		on[node] = append(on[node], p)
	}
	m := split.Map{Partitions: parts}
	all := []int{1, 2, 3, 4, 5, 6}
	play := func(name string, where []int) {
		b.Run(name, func(b *testing.B) {
			ran.Store(0)
			due := time.Now().Add(2*time.Second + time.Duration(b.N)*20*time.Microsecond)
			servers := cpuOf(b, c.Nodes[:3])
			for from := 0; from < b.N; from += 3000 {
				list := make([]*task.Task, 0, 3000)
				for i := from; i < min(from+3000, b.N); i++ {
					list = append(list, task.New("job", nil, task.ID(m.NewID(due, where[i/500%len(where)])), task.At(due)))
				}
				if _, err := d.EnqueueAll(ctx, list); err != nil {
					b.Fatal(err)
				}
			}
			adding := (cpuOf(b, c.Nodes[:3]) - servers) / float64(b.N)
			if time.Until(due) < time.Second {
				b.Fatal("adding the tasks took until they were due")
			}
			time.Sleep(time.Until(due) - time.Second/2)
			servers = cpuOf(b, c.Nodes[:3])
			own := ownCPU(b)
			b.ResetTimer()
			b.ReportMetric(adding, "adding-server-µs/task")
			for ran.Load() < int64(b.N) {
				time.Sleep(time.Millisecond)
			}
			b.ReportMetric(float64(b.N)/time.Since(due).Seconds(), "tasks/s")
			b.ReportMetric(0, "ns/op")
			b.ReportMetric((cpuOf(b, c.Nodes[:3])-servers)/float64(b.N), "server-µs/task")
			b.ReportMetric((ownCPU(b)-own)/float64(b.N), "client-µs/task")
		})
	}
	for turn := range 3 {
		for i, n := range c.Nodes[:3] {
			if len(on[n]) > 0 {
				play(fmt.Sprintf("primary %d alone/%d", i+1, turn+1), on[n])
			}
		}
		play(fmt.Sprintf("all three/%d", turn+1), all)
	}
}

// cpuOf returns the CPU time of servers, in µs.
func cpuOf(b *testing.B, nodes []*testredis.Server) (sum float64) {
	b.Helper()
	for _, n := range nodes {
		info, err := n.Client().Info(b.Context(), "cpu").Result()
		if err != nil {
			b.Fatal(err)
		}
		for s := bufio.NewScanner(strings.NewReader(info)); s.Scan(); {
			if name, value, _ := strings.Cut(s.Text(), ":"); name == "used_cpu_user" || name == "used_cpu_sys" {
				x, _ := strconv.ParseFloat(value, 64)
				sum += x * 1e6
			}
		}
	}
	return sum
}

// ownCPU returns the CPU time of this process, in µs.
func ownCPU(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}
