package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// section is a scenario in the report.
type section struct {
	scenario, title string
	chart           func(*page) (string, error)
	tables          []table
}

// table is one of its tables.
type table struct {
	title   string
	when    func(*Result) bool
	label   func(*Result) string
	columns []column
}

// column is a metric, or something worked out of metrics.
type column struct {
	title  string
	metric string
	work   func(results) (float64, bool)
}

func (c column) span(rs results) (span, bool) {
	if c.work == nil {
		return rs.span(c.metric)
	}
	v, ok := c.work(rs)
	return span{v, v, v}, ok
}

// compare keeps the peers of equal parameters together, in the order of the bench.
func (t table) compare(a, b results) int {
	x, y := &a[0].Params, &b[0].Params
	return cmp.Or(cmp.Compare(x.Rate, y.Rate), cmp.Compare(x.Backlog, y.Backlog), cmp.Compare(x.Instances, y.Instances),
		cmp.Compare(x.Jobs, y.Jobs), cmp.Compare(x.Schedules, y.Schedules))
}

var serverCPU = column{title: "server CPU, µs a task", work: func(rs results) (float64, bool) {
	if s, ok := rs.span("postgres_cpu_us_per_task"); ok {
		return s.mid, true
	}
	s, ok := rs.span("redis_cpu_us_per_task")
	return s.mid, ok
}}

// busy is how many cores worth of time a run took of the server.
var busy = column{title: "server busy, cores", work: func(rs results) (float64, bool) {
	cpu, ok := serverCPU.work(rs)
	return cpu * rs.mid("tasks_per_s") / 1e6, ok
}}

var clientBusy = column{title: "client busy, cores", work: func(rs results) (float64, bool) {
	return rs.mid("client_cpu_us_per_task") * rs.mid("tasks_per_s") / 1e6, true
}}

var (
	rate      = column{title: "tasks/s", metric: "tasks_per_s"}
	commands  = column{title: "commands a task", metric: "commands_per_task"}
	calls     = column{title: "of them sent", metric: "calls_per_task"}
	bytesEach = column{title: "bytes a task", metric: "bytes_per_task"}
	clientCPU = column{title: "client CPU, µs a task", metric: "client_cpu_us_per_task"}
	allocs    = column{title: "allocations a task", metric: "allocs_per_task"}
)

func stored(store, how string, size int) func(*Result) bool {
	return func(r *Result) bool {
		same := r.Params.Store == store || store == "memory" && r.Params.Store == "postgres"
		return same && r.Params.How == how && (size == 0 || r.Params.Bytes == size)
	}
}

func peerOf(r *Result) string { return r.Peer }

func dispatcher(r *Result) string {
	w := &r.Params
	s := fmt.Sprintf("%s, %d", r.Peer, w.Concurrency)
	if w.Servers > 1 {
		s = fmt.Sprintf("%s, %d × %d", r.Peer, w.Servers, w.Concurrency)
	}
	return s + mark(w.Tuned, "tuned") + mark(w.Best, "best found")
}

func mark(on bool, word string) string {
	if on {
		return ", " + word
	}
	return ""
}

func with(format string, value func(*Result) int) func(*Result) string {
	return func(r *Result) string {
		return fmt.Sprintf(strings.ReplaceAll(format, "PEER", r.Peer), thousands(value(r))) + mark(r.Params.Tuned, "tuned") +
			mark(r.Params.LeaseMs > 0, fmt.Sprintf("lease %d s", r.Params.LeaseMs/1000)) +
			mark(r.Params.BeatMs > 0, fmt.Sprintf("each %d ms", r.Params.BeatMs))
	}
}

func thousands(n int) string { return number(float64(n)) }

func spread(name string) []column { return points(name, "", "p50", "p90", "p99", "p99.9", "max") }

// points are columns of a distribution.
func points(name, before string, quantiles ...string) (list []column) {
	for _, q := range quantiles {
		list = append(list, column{title: before + q + ", ms", metric: name + "_" + q + "_ms"})
	}
	return list
}

// machineAlone says what the machine made of a delay while a peer was measured.
func machineAlone(ours string, label func(*Result) string) table {
	return table{"In the same seconds, in a process beside: how late a bare sleep ended, and the answer to a PING sent then:", ofOnbeatBeside, label,
		slices.Concat(points("sleep", "sleep ", "p50", "p99", "max"), points("ping", "PING ", "p50", "p99", "max"), points(ours, "onbeat ", "p50", "p99", "max"))}
}

func ofOnbeatBeside(r *Result) bool {
	_, beside := r.Metrics["sleep_p50_ms"]
	return r.Peer == "onbeat" && beside
}

func rateOf(r *Result) int { return r.Params.Rate }

func jobsOf(r *Result) int { return r.Params.Jobs }

func instancesOf(r *Result) int { return r.Params.Instances }

func beats(r *Result) bool { return r.Params.BeatMs > 0 }

func isIdle(r *Result) bool { return r.Params.BeatMs == 0 }

var sections = []section{
	{"S1", "Enqueue", nil, []table{
		{"In bulk, 64-byte payload:", stored("memory", "bulk", 64), peerOf, []column{rate, serverCPU, commands, calls, bytesEach, clientCPU, busy, clientBusy}},
		{"One at a time from 16 goroutines (BullMQ: 16 promises):", stored("memory", "one", 64), peerOf, []column{rate, serverCPU, commands, calls, bytesEach, clientCPU, busy, clientBusy}},
		{"In bulk, 1 KiB payload:", stored("memory", "bulk", 1024), peerOf, []column{rate, serverCPU, bytesEach, clientCPU}},
		{"In bulk, append-only everysec:", stored("aof", "bulk", 64), peerOf, []column{rate, serverCPU, clientCPU}},
		{"One at a time, append-only everysec:", stored("aof", "one", 64), peerOf, []column{rate, serverCPU, clientCPU}},
	}},
	{"S2", "Dispatch", barsS2, []table{
		{"", stored("memory", "", 0), dispatcher, []column{rate, serverCPU, commands, calls, clientCPU, allocs, busy, clientBusy, {title: "first task, ms", metric: "first_ms"}}},
		{"With append-only everysec:", stored("aof", "", 0), dispatcher, []column{rate, serverCPU, commands, calls, clientCPU, allocs, busy, clientBusy}},
	}},
	{"S2t", "Dispatch to a typed handler", nil, []table{
		{"", stored("memory", "", 0), dispatcher, []column{rate, serverCPU, calls, clientCPU, allocs, busy, clientBusy}},
	}},
	{"S3", "Lag", linesS3, []table{
		{"", nil, with("PEER, %s/s", rateOf), append(spread("lag"), column{title: "early", metric: "early"})},
		machineAlone("lag", with("PEER, %s/s", rateOf)),
	}},
	{"S4", "Cadence", nil, []table{
		{"", nil, with("PEER, jobs: %s", jobsOf), append(spread("jitter"),
			column{title: "missed", metric: "missed"}, column{title: "doubled", metric: "doubled"})},
		machineAlone("jitter", with("PEER, jobs: %s", jobsOf)),
	}},
	{"S5", "Idle", nil, []table{
		{"", isIdle, with("PEER, instances: %s", instancesOf), []column{
			{title: "commands/s sent, an instance", metric: "calls_per_s_per_instance"},
			{title: "with those inside scripts (River: transactions)", metric: "commands_per_s_per_instance"},
			{title: "Redis CPU, ms/s", metric: "redis_cpu_ms_per_s"}, {title: "PostgreSQL CPU, ms/s", metric: "postgres_cpu_ms_per_s"},
			{title: "client CPU, ms/s", metric: "client_cpu_ms_per_s"},
		}},
		{"With a beat, in commands/s sent unless it says otherwise:", beats, with("PEER, instances: %s", instancesOf), []column{
			{title: "in all", metric: "calls_per_s"}, {title: "the leader", metric: "calls_1_per_s"}, {title: "the second", metric: "calls_2_per_s"},
			{title: "the third", metric: "calls_3_per_s"}, {title: "an instance, with those inside scripts", metric: "commands_per_s_per_instance"},
			{title: "beats/s", metric: "beats_per_s"},
			{title: "Redis CPU, ms/s", metric: "redis_cpu_ms_per_s"}, {title: "client CPU, ms/s", metric: "client_cpu_ms_per_s"},
		}},
	}},
	{"S6", "Growth", linesS6, []table{
		{"", nil, with("PEER, pending: %s", func(r *Result) int { return r.Params.Backlog }), []column{
			rate, serverCPU, {title: "bytes a task", metric: "load_bytes_per_task"}, {title: "list, ms", metric: "list_ms"},
			{title: "scrape, ms", metric: "scrape_ms"}, {title: "start, ms", metric: "startup_ms"},
			{title: "newer takes over, ms", metric: "takeover_newer_ms"}, {title: "after a resignation, ms", metric: "takeover_resign_ms"},
			{title: "after a cut cable, ms", metric: "takeover_crash_ms"},
		}},
	}},
	{"S7", "Schedules", nil, []table{
		{"", nil, with("%s schedules", func(r *Result) int { return r.Params.Schedules }), []column{
			{title: "in the set 0.5 s before", metric: "in_set_before"}, {title: "lag p50, ms", metric: "lag_p50_ms"},
			{title: "p99, ms", metric: "lag_p99_ms"}, {title: "max, ms", metric: "lag_max_ms"}, {title: "leader, MB", metric: "leader_mb"},
			{title: "of that heap", metric: "leader_heap_mb"}, {title: "client CPU, µs a slot", metric: "client_cpu_us_per_task"},
		}},
		{"Until an instance runs tasks, and until it knows all schedules, in ms:", nil, with("%s schedules", func(r *Result) int { return r.Params.Schedules }), []column{
			{title: "start", metric: "startup_ms"}, {title: "all known", metric: "startup_knows_ms"},
			{title: "newer takes over", metric: "takeover_newer_ms"}, {title: "all known", metric: "takeover_newer_knows_ms"},
			{title: "after a resignation", metric: "takeover_resign_ms"}, {title: "all known", metric: "takeover_resign_knows_ms"},
			{title: "after a cut cable", metric: "takeover_crash_ms"}, {title: "all known", metric: "takeover_crash_knows_ms"},
		}},
	}},
	{"S8", "Fan-out", nil, []table{
		{"", nil, with("PEER, processes: %s", func(r *Result) int { return r.Params.Processes }), []column{
			rate, serverCPU, clientCPU, {title: "claims", metric: "claims"}, {title: "of them empty", metric: "empty_claims"}, busy, clientBusy,
		}},
	}},
}
