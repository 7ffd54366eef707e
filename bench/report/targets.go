package report

import (
	"fmt"
	"math"
	"slices"
)

// target is something onbeat is to reach, and how far it is.
type target struct {
	what, want string
	// value is the figure, the limit, and whether larger is better; false if it was not measured.
	value func(results) (v, limit float64, atLeast, ok bool)
	unit  string
}

func (p *page) targets() {
	fmt.Fprint(p, "\n## The targets\n\n| | target | measured | reached |\n|---|---|---:|---|\n")
	for _, t := range goals {
		v, limit, atLeast, ok := t.value(p.all)
		if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			fmt.Fprintf(p, "| %s | %s | not measured | |\n", t.what, t.want)
			continue
		}
		reached := "no"
		if atLeast && v >= limit || !atLeast && v <= limit {
			reached = "yes"
		}
		fmt.Fprintf(p, "| %s | %s | %s%s | %s |\n", t.what, t.want, number(v), t.unit, reached)
	}
}

// memory picks the runs of a scenario without append-only files.
func (rs results) memory(peer, scenario string, ok func(*Result) bool) results {
	return rs.of(peer, scenario).where(func(r *Result) bool { return r.Params.Store != "aof" && ok(r) })
}

func how(h string, size int) func(*Result) bool {
	return func(r *Result) bool { return r.Params.How == h && r.Params.Bytes == size }
}

func best(r *Result) bool { return r.Params.Best }

func hundred(r *Result) bool { return !r.Params.Best && r.Params.Concurrency == 100 }

// ratio of onbeat's rate to the fastest of some peers.
func ratio(scenario string, ok func(*Result) bool, limit float64, peers ...string) func(results) (float64, float64, bool, bool) {
	return func(rs results) (float64, float64, bool, bool) {
		ours := rs.memory("onbeat", scenario, ok).mid("tasks_per_s")
		theirs := 0.0
		for _, p := range peers {
			theirs = max(theirs, rs.memory(p, scenario, ok).mid("tasks_per_s"))
		}
		return ours / theirs, limit, true, ours > 0 && theirs > 0
	}
}

// atMost is a metric of onbeat's that has a limit; of several settings, the worst.
func atMost(scenario, metric string, ok func(*Result) bool, limit float64) func(results) (float64, float64, bool, bool) {
	return func(rs results) (float64, float64, bool, bool) {
		worst, found := 0.0, false
		for _, g := range rs.memory("onbeat", scenario, ok).groups() {
			if s, ok := g.span(metric); ok {
				worst, found = max(worst, s.mid), true
			}
		}
		return worst, limit, false, found
	}
}

func rates(list ...int) func(*Result) bool {
	return func(r *Result) bool { return slices.Contains(list, r.Params.Rate) }
}

func jobs(n, beatMs int) func(*Result) bool {
	return func(r *Result) bool { return r.Params.Jobs == n && r.Params.BeatMs == beatMs }
}

func lease(ms int) func(*Result) bool {
	return func(r *Result) bool { return r.Params.LeaseMs == ms && r.Params.BeatMs == 0 }
}

func every(*Result) bool { return true }

// whole compares a figure as it is written, without what comes after the point.
func whole(fn func(results) (float64, float64, bool, bool)) func(results) (float64, float64, bool, bool) {
	return func(rs results) (float64, float64, bool, bool) {
		v, limit, atLeast, ok := fn(rs)
		return math.Round(v), limit, atLeast, ok
	}
}

// beyond is what onbeat's jitter adds to what the machine made of a bare sleep and a PING in the same seconds, run by run.
func beyond(ok func(*Result) bool, limit float64) func(results) (float64, float64, bool, bool) {
	return func(rs results) (float64, float64, bool, bool) {
		var own results
		for _, r := range rs.memory("onbeat", "S4", ok) {
			if floor, is := r.Metrics["ping_p99_ms"]; is {
				own = append(own, Result{Metrics: map[string]float64{"own": r.Metrics["jitter_p99_ms"] - floor}})
			}
		}
		return own.mid("own"), limit, false, len(own) > 0
	}
}

// typed is what a handler with a typed payload leaves of the rate of one that does nothing, in runs that took turns.
func typed(rs results) (float64, float64, bool, bool) {
	does, nothing := rs.memory("onbeat", "S2t", best), rs.memory("onbeat", "S2", best)
	v, ok := pair(perSecond, nothing, does)
	return v.ratios.mid, 0.7, true, ok
}

// largest picks the runs with the most of something.
func largest(rs results, of func(*Result) int) (results, int) {
	most := 0
	for i := range rs {
		most = max(most, of(&rs[i]))
	}
	return rs.where(func(r *Result) bool { return of(r) == most }), most
}

func backlog(r *Result) int { return r.Params.Backlog }

// growth is by how much more onbeat's cost grows than raw's, from the smallest to the largest set.
func growth(rs results) (float64, float64, bool, bool) {
	grew := func(peer string) float64 {
		all := rs.of(peer, "S6")
		if len(all) == 0 {
			return 0
		}
		few := slices.MinFunc(all, func(a, b Result) int { return a.Params.Backlog - b.Params.Backlog }).Params.Backlog
		big, most := largest(all, backlog)
		if most == few {
			return 0
		}
		small := all.where(func(r *Result) bool { return r.Params.Backlog == few })
		return big.mid("redis_cpu_us_per_task") / small.mid("redis_cpu_us_per_task")
	}
	ours, theirs := grew("onbeat"), grew("raw")
	return ours / theirs, 1.3, true, ours > 0 && theirs > 0
}

// atLargest is a metric of onbeat's with the most there is of something.
func atLargest(scenario, metric string, of func(*Result) int, limit float64) func(results) (float64, float64, bool, bool) {
	return func(rs results) (float64, float64, bool, bool) {
		list, _ := largest(rs.of("onbeat", scenario), of)
		s, ok := list.span(metric)
		return s.mid, limit, false, ok
	}
}

func schedulesOf(r *Result) int { return r.Params.Schedules }

func processes(n int) func(*Result) bool {
	return func(r *Result) bool { return r.Params.Processes == n }
}

var goals = []target{
	{"S1 in bulk, to the best Redis peer", "≥ 3.5 ×", ratio("S1", how("bulk", 64), 3.5, "asynq", "bullmq"), " ×"},
	{"S1 in bulk, to River's COPY", "≥ 1.7 ×", ratio("S1", how("bulk", 64), 1.7, "river"), " ×"},
	{"S1 in bulk, to raw", "≥ 0.65 ×", ratio("S1", how("bulk", 64), 0.65, "raw"), " ×"},
	{"S1 one at a time from 16 goroutines, to asynq", "≥ 2 ×", ratio("S1", how("one", 64), 2, "asynq"), " ×"},
	{"bytes a pending task, 64-byte payload", "≤ 282", whole(atMost("S1", "bytes_per_task", how("bulk", 64), 282)), ""},
	{"bytes a pending task, 1 KiB payload", "stated", atMost("S1", "bytes_per_task", how("bulk", 1024), math.MaxFloat64), ""},
	{"S2 best found, to the best peer's", "≥ 5 ×", ratio("S2", best, 5, "asynq", "bullmq", "river"), " ×"},
	{"S2 best found, to raw", "≥ 0.5 ×", ratio("S2", best, 0.5, "raw"), " ×"},
	{"S2 at concurrency 100, to asynq", "≥ 12 ×", ratio("S2", hundred, 12, "asynq"), " ×"},
	{"S2 best found, Redis", "≤ 8 µs a task", atMost("S2", "redis_cpu_us_per_task", best, 8), " µs"},
	{"S2 best found, client", "≤ 8 µs a task", atMost("S2", "client_cpu_us_per_task", best, 8), " µs"},
	{"S2 best found, allocations", "≤ 4 a task", atMost("S2", "allocs_per_task", best, 4), ""},
	{"S2t best found, to S2's", "≥ 0.7 ×", typed, " ×"},
	{"S2t best found, to the best peer's", "≥ 6 ×", ratio("S2t", best, 6, "asynq", "bullmq", "river"), " ×"},
	{"S3 p50 at 100/s and 1,000/s", "≤ 0.5 ms", atMost("S3", "lag_p50_ms", rates(100, 1000), 0.5), " ms"},
	{"S3 p99 at 100/s and 1,000/s", "≤ 2 ms", atMost("S3", "lag_p99_ms", rates(100, 1000), 2), " ms"},
	{"S3 p99 at 5,000/s", "≤ 5 ms", atMost("S3", "lag_p99_ms", rates(5000), 5), " ms"},
	{"S3 tasks that began early", "0", atMost("S3", "early", every, 0), ""},
	{"S4 jitter p99, one job each second", "≤ 1 ms", atMost("S4", "jitter_p99_ms", jobs(1, 0), 1), " ms"},
	{"S4 jitter p99, one job each 100 ms", "≤ 1 ms", atMost("S4", "jitter_p99_ms", jobs(1, 100), 1), " ms"},
	{"S4 in the same seconds, a bare sleep and a PING, p99", "stated", atMost("S4", "ping_p99_ms", every, math.MaxFloat64), " ms"},
	{"S4 jitter p99 beyond that, one job each 100 ms", "stated", beyond(jobs(1, 100), math.MaxFloat64), " ms"},
	{"S4 jitter p99, 1,000 jobs on the same millisecond", "≤ 8 ms", atMost("S4", "jitter_p99_ms", jobs(1000, 0), 8), " ms"},
	{"S4 slots missed", "0", atMost("S4", "missed", every, 0), ""},
	{"S4 slots run twice", "0", atMost("S4", "doubled", every, 0), ""},
	{"S5 commands/s an idle instance", "≤ 1.2", atMost("S5", "calls_per_s_per_instance", lease(0), 1.2), ""},
	{"S5 the same with a lease of 15 s", "≤ 0.5", atMost("S5", "calls_per_s_per_instance", lease(15_000), 0.5), ""},
	{"S5 a beat of 100 ms, three instances in all, commands/s", "stated", atMost("S5", "calls_per_s", every, math.MaxFloat64), ""},
	{"S6 growth of the cost of a task, to raw's", "≤ 1.3 ×", atMostOf(growth), " ×"},
	{"S6 scrape, at the most pending", "≤ 5 ms", atLargest("S6", "scrape_ms", backlog, 5), " ms"},
	{"S6 first page of tasks, at the most pending", "≤ 20 ms", atLargest("S6", "list_ms", backlog, 20), " ms"},
	{"S7 last task of the slot, at the most schedules", "≤ 1,000 ms", atLargest("S7", "lag_max_ms", schedulesOf, 1000), " ms"},
	{"S7 take-over by a newer instance, all schedules known", "≤ 1,500 ms", atLargest("S7", "takeover_newer_knows_ms", schedulesOf, 1500), " ms"},
	{"S7 take-over after a resignation, all schedules known", "≤ 1,500 ms", atLargest("S7", "takeover_resign_knows_ms", schedulesOf, 1500), " ms"},
	{"S7 memory of the leader", "≤ 250 MB", atLargest("S7", "leader_mb", schedulesOf, 250), " MB"},
	{"S8 four processes, to one", "≥ 0.9 ×", fanout, " ×"},
	{"S8 empty claims", "≤ 5 %", emptyClaims, " %"},
}

func atMostOf(fn func(results) (float64, float64, bool, bool)) func(results) (float64, float64, bool, bool) {
	return func(rs results) (float64, float64, bool, bool) {
		v, limit, _, ok := fn(rs)
		return v, limit, false, ok
	}
}

func fanout(rs results) (float64, float64, bool, bool) {
	four, one := rs.of("onbeat", "S8").where(processes(4)), rs.of("onbeat", "S8").where(processes(1))
	return four.mid("tasks_per_s") / one.mid("tasks_per_s"), 0.9, true, len(four) > 0 && len(one) > 0
}

func emptyClaims(rs results) (float64, float64, bool, bool) {
	worst, found := 0.0, false
	for _, g := range rs.of("onbeat", "S8").groups() {
		if all := g.mid("claims"); all > 0 {
			worst, found = max(worst, 100*g.mid("empty_claims")/all), true
		}
	}
	return worst, 5, false, found
}
