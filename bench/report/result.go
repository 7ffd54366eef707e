// Package report keeps the figures of a bench, and makes docs/performance.md of them.
package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/onbeat/onbeat/bench/wire"
)

// Result is a line of results/latest.jsonl.
type Result struct {
	Peer     string       `json:"peer"`
	Scenario string       `json:"scenario"`
	Params   wire.Params  `json:"params"`
	Run      int          `json:"run"`
	Metrics  wire.Metrics `json:"metrics"`
}

// results are all lines of a bench.
type results []Result

func read(path string) (results, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all results
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r Result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if !r.Params.Search {
			all = append(all, r)
		}
	}
	return all, lines.Err()
}

// where returns the results that a test accepts.
func (rs results) where(ok func(*Result) bool) results {
	var out results
	for i := range rs {
		if ok(&rs[i]) {
			out = append(out, rs[i])
		}
	}
	return out
}

// of are the results of a peer in a scenario.
func (rs results) of(peer, scenario string) results {
	return rs.where(func(r *Result) bool { return (peer == "" || r.Peer == peer) && r.Scenario == scenario })
}

// span is the median of runs, and their range.
type span struct{ mid, low, high float64 }

// span of a metric over the runs; false if none has it.
func (rs results) span(metric string) (span, bool) {
	var list []float64
	for _, r := range rs {
		if v, ok := r.Metrics[metric]; ok {
			list = append(list, v)
		}
	}
	if len(list) == 0 {
		return span{}, false
	}
	slices.Sort(list)
	mid := list[len(list)/2]
	if len(list)%2 == 0 {
		mid = (list[len(list)/2-1] + mid) / 2
	}
	return span{mid, list[0], list[len(list)-1]}, true
}

// mid is the median, or zero.
func (rs results) mid(metric string) float64 {
	s, _ := rs.span(metric)
	return s.mid
}

// groups splits results into those of equal parameters, in the order in which they come.
func (rs results) groups() []results {
	var out []results
	at := map[string]int{}
	for _, r := range rs {
		p, _ := json.Marshal(r.Params)
		key := r.Peer + r.Scenario + string(p)
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], r)
	}
	return out
}
