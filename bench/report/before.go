package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// figure is a metric that is compared with an earlier commit's.
type figure struct {
	metric, title string
	more          bool // is better
}

// compared are the figures of each scenario that a user would notice.
var compared = map[string][]figure{
	"S1":  {perSecond, redisTime, clientTime, {"bytes_per_task", "bytes a task", false}},
	"S2":  {perSecond, redisTime, clientTime, {"allocs_per_task", "allocations a task", false}},
	"S2t": {perSecond, redisTime, clientTime, {"allocs_per_task", "allocations a task", false}},
	"S3":  {{"lag_p50_ms", "lag p50, ms", false}, {"lag_p99_ms", "lag p99, ms", false}},
	"S4":  {{"jitter_p50_ms", "jitter p50, ms", false}, {"jitter_p99_ms", "jitter p99, ms", false}},
	"S5": {{"calls_per_s_per_instance", "commands/s sent, an instance", false}, {"redis_cpu_ms_per_s", "Redis CPU, ms/s", false},
		{"client_cpu_ms_per_s", "client CPU, ms/s", false}},
	"S6": {perSecond, redisTime, {"load_bytes_per_task", "bytes a task", false}, {"list_ms", "list, ms", false}, {"scrape_ms", "scrape, ms", false},
		{"takeover_newer_ms", "newer takes over, ms", false}, {"takeover_resign_ms", "after a resignation, ms", false},
		{"takeover_crash_ms", "after a cut cable, ms", false}},
	"S7": {{"lag_p50_ms", "lag p50, ms", false}, {"lag_max_ms", "last task of the slot, ms", false}, clientTime,
		{"leader_mb", "leader, MB", false}, {"startup_knows_ms", "start, all known, ms", false},
		{"takeover_newer_knows_ms", "newer, all known, ms", false}, {"takeover_resign_knows_ms", "after a resignation, all known, ms", false},
		{"takeover_crash_knows_ms", "after a cut cable, all known, ms", false}},
	"S8": {perSecond, redisTime, clientTime},
}

var (
	perSecond  = figure{"tasks_per_s", "tasks/s", true}
	redisTime  = figure{"redis_cpu_us_per_task", "Redis CPU, µs a task", false}
	clientTime = figure{"client_cpu_us_per_task", "client CPU, µs a task", false}
)

// least is by how much a median must differ to be called better or worse.
const least = 1.05

// versus is a figure of both commits, in runs that took turns.
type versus struct {
	figure
	what                string
	before, now, ratios span
	runs                int
}

// verdict is better or worse if every run of one was better than every run of the other, and nothing otherwise.
func (v *versus) verdict() string {
	better, worse := v.now.high < v.before.low, v.now.low > v.before.high
	if v.more {
		better, worse = worse, better
	}
	switch ratio := v.ratios.mid; {
	case v.runs < 3 || ratio < least && ratio > 1/least:
		return ""
	case better:
		return "better"
	case worse:
		return "worse"
	}
	return ""
}

// before writes the table of what an earlier commit measured, if one took turns.
func (p *page) before() {
	for _, commit := range p.earlier.commits() {
		all := compare(p.all, p.earlier.where(func(r *Result) bool { return r.Commit == commit }))
		if len(all) == 0 {
			continue
		}
		counts := map[string]int{}
		for i := range all {
			counts[all[i].verdict()]++
		}
		fmt.Fprintf(p, "\n## Before and after\n\n")
		p.note("before")
		fmt.Fprintf(p, "\nBefore is the library of commit %s. Of %d figures %d are better, %d worse, and %d neither.\n\n", commit,
			len(all), counts["better"], counts["worse"], counts[""])
		fmt.Fprint(p, "| | | before | now | now to before | |\n|---|---|---:|---:|---:|---|\n")
		for i := range all {
			v := &all[i]
			fmt.Fprintf(p, "| %s | %s | %s | %s | %s | %s |\n", v.what, v.title, cellText(v.before, true, v.runs), cellText(v.now, true, v.runs),
				cellText(v.ratios, true, v.runs), v.verdict())
		}
	}
}

// commits are those that took turns, in the order in which they come.
func (rs results) commits() (list []string) {
	for i := range rs {
		if c := rs[i].Commit; !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// compare pairs the runs of one commit with those of this tree that they took turns with.
func compare(all, earlier results) (list []versus) {
	for _, rs := range earlier.groups() {
		first := &rs[0]
		ours := all.of(first.Peer, first.Scenario).where(func(r *Result) bool { return r.Params == first.Params })
		for _, f := range compared[first.Scenario] {
			if v, ok := pair(f, rs, ours); ok {
				v.what = what(first)
				list = append(list, v)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b versus) int { return cmp.Compare(scenarioOf(a.what), scenarioOf(b.what)) })
	return list
}

func scenarioOf(what string) string {
	name, _, _ := strings.Cut(what, ",")
	return name
}

// pair compares run by run, so that a minute in which the machine was slow counts for both.
func pair(f figure, before, now results) (versus, bool) {
	v := versus{figure: f}
	var ratios results
	for i := range before {
		for k := range now {
			a, is := before[i].Metrics[f.metric]
			b, are := now[k].Metrics[f.metric]
			if before[i].Run == now[k].Run && is && are && a != 0 && !math.IsNaN(b/a) {
				ratios = append(ratios, Result{Metrics: map[string]float64{"ratio": b / a}})
			}
		}
	}
	var there bool
	if v.ratios, there = ratios.span("ratio"); !there {
		return v, false
	}
	v.runs = len(ratios)
	v.before, _ = before.span(f.metric)
	v.now, _ = now.span(f.metric)
	return v, true
}

// what names the thing measured by its scenario and parameters.
func what(r *Result) string {
	w := &r.Params
	parts := []string{r.Scenario}
	if w.How != "" {
		parts = append(parts, map[string]string{"bulk": "in bulk", "one": "one at a time"}[w.How], fmt.Sprintf("%d bytes", w.Bytes))
	}
	for _, n := range []struct {
		format string
		value  int
	}{
		{"%s/s", w.Rate}, {"jobs: %s", w.Jobs}, {"each %s ms", w.BeatMs}, {"instances: %s", w.Instances}, {"lease %s ms", w.LeaseMs},
		{"pending: %s", w.Backlog}, {"%s schedules", w.Schedules}, {"processes: %s", w.Processes},
	} {
		if n.value > 0 {
			parts = append(parts, fmt.Sprintf(n.format, thousands(n.value)))
		}
	}
	if strings.HasPrefix(r.Scenario, "S2") {
		parts = append(parts, fmt.Sprintf("concurrency %s", thousands(w.Concurrency))+mark(w.Best, "best found"))
	}
	return strings.Join(parts, ", ") + mark(w.Store == "aof", "append-only")
}
