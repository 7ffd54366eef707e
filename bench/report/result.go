// Package report keeps the figures of a bench, and makes docs/performance.md of them.
package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/bench/wire"
)

// Result is a line of results/latest.jsonl.
type Result struct {
	Peer     string       `json:"peer"`
	Commit   string       `json:"commit,omitempty"` // of onbeat: the earlier one that took turns with this tree's
	Scenario string       `json:"scenario"`
	Params   wire.Params  `json:"params"`
	Run      int          `json:"run"`
	Metrics  wire.Metrics `json:"metrics"`
}

// results are all lines of a bench.
type results []Result

// read reads the figures at path, without those of a search.
func read(path string) (results, error) {
	var all results
	err := scan(path, func(r Result) error {
		if !r.Params.Search {
			all = append(all, r)
		}
		return nil
	})
	return all, err
}

// Copy writes the lines of path that are to be kept. A file that is not there has none.
func Copy(w io.Writer, path string, keep func(*Result) bool) error {
	out := json.NewEncoder(w)
	err := scan(path, func(r Result) error {
		if !keep(&r) {
			return nil
		}
		return out.Encode(r)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func scan(path string, each func(Result) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r Result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := each(r); err != nil {
			return err
		}
	}
	return lines.Err()
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

func ofThisTree(r *Result) bool { return r.Commit == "" }

func ofEarlier(r *Result) bool { return r.Commit != "" }

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

// runs says how often each thing was measured.
func (rs results) runs() string {
	most := 0
	fewer := map[int]map[string]bool{}
	for _, g := range rs.groups() {
		most = max(most, len(g))
	}
	for _, g := range rs.groups() {
		if n := len(g); n < most {
			if fewer[n] == nil {
				fewer[n] = map[string]bool{}
			}
			fewer[n][g[0].Scenario+" of "+g[0].Peer] = true
		}
	}
	text := fmt.Sprintf("Runs of each: %d", most)
	for _, n := range slices.Sorted(maps.Keys(fewer)) {
		text += fmt.Sprintf("; %d of %s", n, strings.Join(slices.Sorted(maps.Keys(fewer[n])), ", "))
	}
	return text + "."
}
