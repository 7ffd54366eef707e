package scenario

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/bench/peer"
	"github.com/onbeat/onbeat/bench/wire"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

// schedules is S7, of onbeat alone: very many schedules on one leader, all on the same slot.
func schedules(ctx context.Context, c *wire.Child) error {
	j := &c.Job.Params
	o, err := peer.NewOnbeat(c.Job.Redis)
	if err != nil {
		return err
	}
	defer o.Close()
	every := time.Duration(j.EveryS) * time.Second
	m := wire.Metrics{}

	probes := newProber(ctx, o)
	a, err := newNode(ctx, o, declarations(j.Schedules, every), j.Concurrency)
	if err != nil {
		return err
	}
	if m["startup_ms"], m["startup_knows_ms"], err = a.took(); err != nil {
		return err
	}
	probes.stop()
	// The first slot with time enough before it for every task to be pushed.
	top := time.Now().Add(min(every/2, 12*time.Second)).Truncate(every).Add(every)
	slots := a.expect(top, j.Schedules)
	time.Sleep(time.Until(top.Add(-500 * time.Millisecond)))
	counts, err := o.Admin().Activity.Counts(ctx)
	if err != nil {
		return err
	}
	m["in_set_before"] = float64(counts.Due)

	s := c.Begin("", o.Calls)
	if err := slots.wait(); err != nil {
		return err
	}
	s.End(wire.Event{Tasks: j.Schedules, Seconds: time.Since(s.Began()).Seconds()})
	quantiles(m, "lag", slots.late)
	m["leader_mb"], m["leader_heap_mb"] = memoryMB()
	if err := takeOvers(ctx, o, a, declarations(j.Schedules, every), m); err != nil {
		return err
	}
	c.Say(wire.Event{Do: "metrics", Metrics: m})
	if counts.Due < int64(j.Schedules) {
		return fmt.Errorf("half a second before the slot, %d of its %d tasks were in the set", counts.Due, j.Schedules)
	}
	return slots.once()
}

// declarations are schedules with the same slots.
func declarations(n int, every time.Duration) []producer.Schedule {
	rule := schedule.Every(every)
	rule.Start = schedule.StartAligned
	list := make([]producer.Schedule, n)
	for i := range list {
		list[i] = producer.Schedule{
			Name: fmt.Sprintf("job-%06d", i), Rule: rule, Task: "beat", Payload: []byte(strconv.Itoa(i)),
		}
	}
	return list
}

// memoryMB is what the process has now, in MB, and what of it is the Go heap in use.
func memoryMB() (rss, heap float64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, float64(m.HeapInuse) / 1e6
	}
	if f := strings.Fields(string(b)); len(f) > 1 {
		pages, _ := strconv.ParseFloat(f[1], 64)
		rss = pages * float64(os.Getpagesize()) / 1e6
	}
	return rss, float64(m.HeapInuse) / 1e6
}
