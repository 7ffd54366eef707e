// Command scale prints the tables of docs/scaling.md that no machine here can measure. From the measured cost of a task, a heartbeat, a
// schedule and a partition it computes the load of a large cluster, the limits that it reaches, and how late the last slot of a herd begins.
//
//	go run ./scale
package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// costs are measured costs, each on one machine with 2 cores, for the primary of Redis unless it says otherwise.
type costs struct {
	Add, Run  time.Duration // of CPU, a task: added in batches; claimed and settled (BenchmarkPartitions_primaries: with a replica)
	Heartbeat time.Duration // of CPU (S5: 100 instances)
	Task      float64       // bytes of a task that waits (S1)
	Schedule  float64       // bytes, with its health (used_memory with 20,000 of them)
	Leader    float64       // bytes of the instance that leads a schedule (S7)
	Partition float64       // bytes of an instance for each partition (its resident memory with 16 and 64)
	Conns     float64       // connections of an instance for each partition (the same)
}

var measured = costs{
	Add: 6 * time.Microsecond, Run: 12 * time.Microsecond, Heartbeat: 290 * time.Microsecond,
	Task: 281, Schedule: 830, Leader: 1950, Partition: 250e3, Conns: 1.5,
}

// cluster is a cluster that runs a load.
type cluster struct {
	Nodes, Partitions int
	Lease             time.Duration
	Instances         int
	Tasks             float64 // a second
	Pending           float64
	Schedules         float64
}

// busy is how much of a core's time each primary spends on tasks and on heartbeats.
func (c *cluster) busy(m *costs) (tasks, heartbeats float64) {
	tasks = c.Tasks * (m.Add + m.Run).Seconds() / float64(c.Nodes)
	each := 5 / c.Lease.Seconds() // a heartbeat in each fifth of the lease
	heartbeats = float64(c.Instances*c.Partitions) * each * m.Heartbeat.Seconds() / float64(c.Nodes)
	return tasks, heartbeats
}

// full is how busy a primary may be: beyond that a short peak makes tasks wait.
const full = 0.7

func main() { tables(os.Stdout, &measured) }

func tables(w io.Writer, m *costs) {
	large := cluster{Nodes: 32, Partitions: 64, Lease: 30 * time.Second, Instances: 1000, Tasks: 1e6, Pending: 1e7, Schedules: 1e7}
	fmt.Fprint(w, "| primaries | partitions | lease | a primary's core: tasks | heartbeats | together | memory | connections |\n|---|---|---|---|---|---|---|---|\n")
	for _, c := range []struct {
		nodes, partitions int
		lease             time.Duration
	}{{16, 32, 30 * time.Second}, {32, 64, 5 * time.Second}, {32, 64, 30 * time.Second}, {48, 48, 15 * time.Second}, {48, 96, 30 * time.Second}} {
		x := large
		x.Nodes, x.Partitions, x.Lease = c.nodes, c.partitions, c.lease
		tasks, beats := x.busy(m)
		memory := (x.Pending*m.Task + x.Schedules*m.Schedule) / float64(x.Nodes)
		conns := float64(x.Instances*x.Partitions) * m.Conns / float64(x.Nodes)
		fmt.Fprintf(w, "| %d | %d | %v | %.0f %% | %.0f %% | %s | %.1f GB | %s |\n", x.Nodes, x.Partitions, x.Lease, 100*tasks, 100*beats, verdict(tasks+beats), memory/1e9, count(conns))
	}

	fmt.Fprintf(w, "\n| with %d primaries, %d partitions, a lease of %v and %s instances | runs out at |\n|---|---|\n", large.Nodes, large.Partitions, large.Lease, count(float64(large.Instances)))
	tasks, beats := large.busy(m)
	fmt.Fprintf(w, "| the core of each primary (%.0f %%) | %s tasks/s |\n", 100*full, count((full-beats)/tasks*large.Tasks))
	fmt.Fprintf(w, "| the same, by heartbeats, at %s tasks/s | %s instances |\n", count(large.Tasks), count((full-tasks)/beats*float64(large.Instances)))
	fmt.Fprintf(w, "| connections of a primary (`maxclients` 10,000) | %s instances |\n", count(1e4*float64(large.Nodes)/m.Conns/float64(large.Partitions)))
	fmt.Fprintf(w, "| 10 GB of each primary, for tasks that wait | %s tasks |\n", count((1e10*float64(large.Nodes)-large.Schedules*m.Schedule)/m.Task))
	fmt.Fprintf(w, "| 1 GB of an instance that leads one partition | %s schedules |\n", count(1e9/m.Leader*float64(large.Partitions)))
	fmt.Fprintf(w, "| 1 GB of an instance, for what each partition takes | %s partitions (256 is the most) |\n", count(1e9/m.Partition))

	fmt.Fprint(w, "\n| slots on one instant | `jitter` | adding them before takes | begin late: p50 | p99 | the last |\n|---|---|---|---|---|---|\n")
	for _, slots := range []int{100_000, 1_000_000, 10_000_000} {
		for _, jitter := range []time.Duration{0, 5 * time.Second, 30 * time.Second} {
			h := herd{slots: slots / large.Nodes, jitter: jitter, serve: m.Run, workers: large.Instances * 100 / large.Nodes, run: 50 * time.Millisecond}
			late := h.play()
			add := time.Duration(h.slots) * m.Add
			fmt.Fprintf(w, "| %s | %v | %s | %s | %s | %s |\n", count(float64(slots)), jitter, short(add), short(late.p50), short(late.p99), short(late.last))
		}
	}
}

func verdict(busy float64) string {
	if busy > full {
		return fmt.Sprintf("**%.0f %%: too much**", 100*busy)
	}
	return fmt.Sprintf("%.0f %%", 100*busy)
}

// count prints a number by two digits, with commas.
func count(n float64) string {
	unit := 1.0
	for n/unit >= 100 {
		unit *= 10
	}
	s := fmt.Sprintf("%.0f", float64(int64(n/unit+0.5))*unit)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// short prints a time by two digits or so.
func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	if d < time.Millisecond {
		return "under 1 ms"
	}
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}
