package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// result is the outcome of one run.
type result struct {
	Peer     string  `json:"peer"`
	Commit   string  `json:"commit,omitempty"` // the other one, whose onbeat took turns with this tree's
	Scenario string  `json:"scenario"`
	Params   params  `json:"params"`
	Run      int     `json:"run"`
	Metrics  metrics `json:"metrics"`
}

func readResults(path string) (all []result, err error) {
	b, err := os.ReadFile(path)
	for line := range bytes.Lines(b) {
		var r result
		err = errors.Join(err, json.Unmarshal(line, &r))
		if !r.Params.Search {
			all = append(all, r)
		}
	}
	return all, err
}

func writeResults(path string, all []result) error {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	for _, r := range all {
		if err := lines.Encode(r); err != nil {
			return err
		}
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// column is a metric in a table.
type column struct{ metric, title string }

var (
	rate      = column{"tasks_per_s", "tasks/s"}
	serverCPU = column{"server_cpu_us_per_task", "server CPU, µs a task"}
	commands  = column{"commands_per_task", "commands a task"}
	calls     = column{"calls_per_task", "of them sent"}
	bytesEach = column{"bytes_per_task", "bytes a task"}
	clientCPU = column{"client_cpu_us_per_task", "client CPU, µs a task"}
	allocs    = column{"allocs_per_task", "allocations a task"}
)

// points are columns of a distribution.
func points(name string) (list []column) {
	for _, at := range []string{"p50", "p90", "p99", "p99.9", "max"} {
		list = append(list, column{name + "_" + at + "_ms", at + ", ms"})
	}
	return list
}

// value is a metric of a run. Benches of earlier commits name it by the server.
func (m metrics) value(name string) (float64, bool) {
	v, ok := m[name]
	if rest, of := strings.CutPrefix(name, "server_"); of && !ok {
		v, ok = m["redis_"+rest]
	}
	return v, ok
}

// row is the runs of one peer with one set of parameters.
type row struct {
	peer, commit string
	params       params
	runs         map[int]metrics
}

// rowsOf puts the runs of a scenario together, and peers that did the same next to each other.
func rowsOf(all []result, scenario string) []*row {
	var rows []*row
	var kinds []params
	for _, r := range all {
		if r.Scenario != scenario {
			continue
		}
		i := slices.IndexFunc(rows, func(o *row) bool { return o.peer == r.Peer && o.commit == r.Commit && o.params == r.Params })
		if i < 0 {
			i, rows = len(rows), append(rows, &row{r.Peer, r.Commit, r.Params, map[int]metrics{}})
		}
		if kind := r.Params.kind(); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		rows[i].runs[r.Run] = r.Metrics
	}
	place := func(r *row) int { return slices.Index(kinds, r.params.kind())*len(peers) + slices.Index(peers, r.peer) }
	slices.SortStableFunc(rows, func(a, b *row) int { return place(a) - place(b) })
	return rows
}

// kind has the parameters that are the same for all peers that are compared.
func (p params) kind() params {
	p.Batch, p.Tasks, p.Seconds, p.Tuned = 0, 0, 0, false
	if p.How != "one" {
		p.Callers = 0
	}
	if p.Best || p.Backlog > 0 || p.Processes > 0 {
		p.Concurrency, p.Servers = 0, 0
	}
	if p.Store == "postgres" {
		p.Store = "memory"
	}
	return p
}

// label says in a few words what p is.
func (p *params) label() string {
	var parts []string
	add := func(format string, n int) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, figure(float64(n))))
		}
	}
	word := func(is bool, text string) {
		if is {
			parts = append(parts, text)
		}
	}
	add("%s partitions", p.Partitions)
	word(p.How == "bulk", "in bulk")
	word(p.How == "one", "one at a time")
	word(p.How == "one" && p.Callers == 1, "a lone caller")
	if p.How != "" {
		add("%s bytes", p.Bytes)
	} else if p.Rate+p.Backlog+p.Instances+p.Jobs+p.Schedules+p.Processes == 0 && p.Feature == "" { // S2
		word(p.Servers > 1, fmt.Sprintf("%d × %d", p.Servers, p.Concurrency))
		word(p.Servers <= 1, figure(float64(p.Concurrency)))
	}
	add("%s/s", p.Rate)
	add("%s pending", p.Backlog)
	add("%s instances", p.Instances)
	add("lease %s s", p.LeaseMs/1000)
	add("%s jobs", p.Jobs)
	add("each %s ms", p.BeatMs)
	add("%s schedules", p.Schedules)
	add("%s processes", p.Processes)
	word(p.Feature != "", p.Feature)
	word(p.Tuned, "tuned")
	word(p.Best, "best found")
	word(p.Store == "aof", "append-only")
	return strings.Join(parts, ", ")
}

func rowLabel(peer, commit string, p *params) string {
	if commit != "" {
		peer += " of " + commit
	}
	return peer + ", " + p.label()
}

// span is the median of runs, and their range.
type span struct{ mid, low, high float64 }

func spanOf(list []float64) (s span, ok bool) {
	if len(list) == 0 {
		return s, false
	}
	slices.Sort(list)
	n := len(list)
	return span{(list[(n-1)/2] + list[n/2]) / 2, list[0], list[n-1]}, true
}

func (r *row) span(metric string) (span, bool) {
	var list []float64
	for _, m := range r.runs {
		if v, ok := m.value(metric); ok {
			list = append(list, v)
		}
	}
	return spanOf(list)
}

// to is the ratio of this row's metric to another's, run by run, so that a minute in which the machine was slow counts for both.
func (r *row) to(other *row, metric string) (span, bool) {
	var list []float64
	for run, m := range r.runs {
		a, ok1 := m.value(metric)
		b, ok2 := other.runs[run].value(metric)
		if ok1 && ok2 && b != 0 {
			list = append(list, a/b)
		}
	}
	return spanOf(list)
}

// text is a median and, of several runs, their range.
func (s span) text(ok bool) string {
	if !ok {
		return "-"
	}
	if figure(s.low) == figure(s.high) {
		return figure(s.mid)
	}
	return fmt.Sprintf("%s (%s to %s)", figure(s.mid), figure(s.low), figure(s.high))
}

// figure writes three digits that count, and thousands with commas.
func figure(v float64) string {
	switch {
	case v < 0:
		return "-" + figure(-v)
	case v == 0:
		return "0"
	case v < 0.1:
		return fmt.Sprintf("%.3f", v)
	case v < 10:
		return strings.TrimSuffix(fmt.Sprintf("%.2f", v), ".00")
	case v < 100:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	}
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// writeTable writes the table of a scenario: a row for each peer and its parameters. Each rate is followed by how many times
// as fast onbeat was with the same. Each row of another commit is followed by the ratio of this tree's figures to that commit's.
func writeTable(w io.Writer, s *scenario, rows []*row) {
	rule := "|---|"
	fmt.Fprint(w, "| |")
	for _, c := range s.columns {
		fmt.Fprintf(w, " %s |", c.title)
		rule += "---:|"
		if c == rate && !s.aside {
			fmt.Fprint(w, " onbeat to it |")
			rule += "---:|"
		}
	}
	fmt.Fprintf(w, "\n%s\n", rule)
	for _, r := range rows {
		i := slices.IndexFunc(rows, func(o *row) bool { return o.peer == "onbeat" && o.commit == "" && o.params.kind() == r.params.kind() })
		write := func(label string, cell func(metric string) (span, bool)) {
			fmt.Fprintf(w, "| %s |", label)
			for _, c := range s.columns {
				v, ok := cell(c.metric)
				fmt.Fprintf(w, " %s |", v.text(ok))
				if c != rate || s.aside {
					continue
				}
				if ok = i >= 0 && r != rows[i] && label != nowToBefore; ok {
					ours, _ := rows[i].span(c.metric)
					v = span{ours.mid / v.mid, ours.mid / v.mid, ours.mid / v.mid}
				}
				fmt.Fprintf(w, " %s |", v.text(ok))
			}
			fmt.Fprintln(w)
		}
		if s.aside && r != rows[0] {
			write(rowLabel(r.peer, r.commit, &r.params), func(metric string) (span, bool) { return r.to(rows[0], metric) })
			continue
		}
		write(rowLabel(r.peer, r.commit, &r.params), r.span)
		if r.commit != "" && i >= 0 {
			write(nowToBefore, func(metric string) (span, bool) { return rows[i].to(r, metric) })
		}
	}
}

const nowToBefore = "**now to before**"

// printTables writes the tables of all scenarios that were measured.
func printTables(w io.Writer, all []result) {
	for _, s := range scenarios {
		if rows := rowsOf(all, s.name); len(rows) > 0 {
			fmt.Fprintf(w, "\n## %s. %s\n\n", s.name, s.title)
			writeTable(w, s, rows)
		}
	}
}

// brief is the first columns of a run.
func (s *scenario) brief(m metrics) (text string) {
	for _, c := range s.columns {
		if v, ok := m.value(c.metric); ok {
			text += fmt.Sprintf(" %s %s;", figure(v), c.title)
		}
	}
	return strings.TrimSuffix(text, ";")
}
