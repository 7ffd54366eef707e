package report

import (
	"bytes"
	"embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed notes/*.md
var notes embed.FS

// page is the report in the making.
type page struct {
	bytes.Buffer
	all     results
	earlier results // of an earlier commit
	m       machine
	charts  string // folder, beside the document
}

// Write writes the report of the figures at path to doc, and its charts into a folder of that name beside it.
func Write(path, doc string) error {
	all, err := read(path)
	if err != nil {
		return err
	}
	m, err := readMachine(path)
	if err != nil {
		return err
	}
	p := &page{all: all.where(ofThisTree), earlier: all.where(ofEarlier), m: m, charts: strings.TrimSuffix(doc, filepath.Ext(doc))}
	if err := os.MkdirAll(p.charts, 0o755); err != nil {
		return err
	}
	p.note("head")
	p.machine()
	p.targets()
	for _, s := range sections {
		if len(p.all.of("", s.scenario)) == 0 {
			continue
		}
		fmt.Fprintf(p, "\n## %s. %s\n\n", s.scenario, s.title)
		p.note(s.scenario)
		if s.chart != nil {
			name, err := s.chart(p)
			if err != nil {
				return fmt.Errorf("chart of %s: %w", s.scenario, err)
			}
			fmt.Fprintf(p, "\n![%s](%s/%s)\n", s.title, filepath.Base(p.charts), name)
		}
		for _, t := range s.tables {
			p.table(s.scenario, t)
		}
	}
	p.before()
	p.note("api")
	p.note("tail")
	return os.WriteFile(doc, p.Bytes(), 0o644)
}

// note writes what a person wrote about a part.
func (p *page) note(name string) {
	b, err := notes.ReadFile("notes/" + name + ".md")
	if err == nil {
		p.Write(b)
	}
}

func (p *page) machine() {
	m := &p.m
	fmt.Fprintf(p, "\n## The machine\n\n")
	fmt.Fprintf(p, "%s, %d cores, %s of memory, Linux %s. Redis %s", m.CPU, m.Cores, m.Memory, m.Kernel, m.Redis)
	if m.Allocator != "" {
		fmt.Fprintf(p, " (allocator %s)", m.Allocator)
	}
	fmt.Fprintf(p, ", Go %s", m.Go)
	if m.Postgres != "" {
		fmt.Fprintf(p, ", PostgreSQL %s", m.Postgres)
	}
	if m.Node != "" {
		fmt.Fprintf(p, ", Node %s", strings.TrimPrefix(m.Node, "v"))
	}
	if m.Stolen >= 0.1 {
		fmt.Fprintf(p, ". It is a guest: %.1f %% of the time in which it wanted a processor, its host gave to others", m.Stolen)
	}
	if s, ok := p.all.span("others_cores"); ok {
		fmt.Fprintf(p, ". While a peer was measured, %s cores were busy with something else (median of the runs; at most %s)", number(s.mid), number(s.high))
	}
	fmt.Fprintf(p, ". Measured on %s.\n\n%s\n\n", m.Date, p.all.runs())
	for _, name := range slices.Sorted(maps.Keys(m.Modules)) {
		fmt.Fprintf(p, "- %s %s\n", name, m.Modules[name])
	}
	for _, name := range slices.Sorted(maps.Keys(m.Skipped)) {
		fmt.Fprintf(p, "- %s was not measured: %s\n", name, m.Skipped[name])
	}
}

// table writes one table of a scenario: a row for each peer and parameters.
func (p *page) table(scenario string, t table) {
	rows := p.all.of("", scenario).where(func(r *Result) bool { return t.when == nil || t.when(r) }).groups()
	columns := slices.DeleteFunc(slices.Clone(t.columns), func(c column) bool {
		return !slices.ContainsFunc(rows, func(rs results) bool { _, ok := c.span(rs); return ok })
	})
	if len(rows) == 0 || len(columns) == 0 {
		return
	}
	slices.SortStableFunc(rows, func(a, b results) int { return t.compare(a, b) })
	fmt.Fprintln(p)
	if t.title != "" {
		fmt.Fprintf(p, "%s\n\n", t.title)
	}
	fmt.Fprint(p, "| |")
	rule := "|---|"
	for _, c := range columns {
		fmt.Fprintf(p, " %s |", c.title)
		rule += "---:|"
	}
	fmt.Fprintf(p, "\n%s\n", rule)
	for _, rs := range rows {
		fmt.Fprintf(p, "| %s |", t.label(&rs[0]))
		for _, c := range columns {
			s, ok := c.span(rs)
			fmt.Fprintf(p, " %s |", cellText(s, ok, len(rs)))
		}
		fmt.Fprintln(p)
	}
}

// cellText is a median and, of several runs, their range.
func cellText(s span, ok bool, runs int) string {
	if !ok {
		return "-"
	}
	if runs == 1 || number(s.low) == number(s.high) {
		return number(s.mid)
	}
	return fmt.Sprintf("%s (%s to %s)", number(s.mid), number(s.low), number(s.high))
}

// number writes three digits that count, and thousands with commas.
func number(v float64) string {
	switch {
	case v < 0:
		return "-" + number(-v)
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
