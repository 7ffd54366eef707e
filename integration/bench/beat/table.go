package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// column is a case of the comparison: a job in a story.
type column struct{ title, story, job string }

var columns = []column{
	{"each second", plain, second},
	{"each 5 s", plain, five},
	{"runs of 3 s", plain, long},
	{"runs longer than the interval", plain, overrun},
	{"a new interval", plain, changes},
	{"clocks apart, each second", clocks, second},
	{"clocks apart, each 5 s", clocks, five},
}

// group is the runs of one peer by their stories.
type group map[string][]*result

func groupsOf(all []*result) map[string]group {
	groups := map[string]group{}
	for _, r := range all {
		if groups[r.Peer] == nil {
			groups[r.Peer] = group{}
		}
		groups[r.Peer][r.Story] = append(groups[r.Peer][r.Story], r)
	}
	for _, g := range groups {
		for _, list := range g {
			slices.SortFunc(list, func(a, b *result) int { return a.Run - b.Run })
		}
	}
	return groups
}

// median is the median of a figure, of the runs of a story that count.
func (g group) median(story string, figure func(*result) float64) (float64, bool) {
	var list []float64
	for _, r := range g[story] {
		if !r.Starved {
			list = append(list, figure(r))
		}
	}
	if len(list) == 0 {
		return 0, false
	}
	slices.Sort(list)
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2, true
}

// text writes slots missed, doubled and off the grid.
func text(missed, doubled, off float64) string {
	if missed+doubled+off == 0 {
		return "0"
	}
	return fmt.Sprintf("%g / %g / %g", missed, doubled, off)
}

// cell has the medians of a job's figures, in an act or, without an act, in all.
func (g group) cell(story, job, act string) string {
	if _, ok := g.median(story, func(*result) float64 { return 0 }); !ok {
		return "-"
	}
	of := func(figure func(counts) int) float64 {
		v, _ := g.median(story, func(r *result) float64 {
			if act != "" {
				return float64(figure(r.Jobs[job].Acts[act]))
			}
			return float64(figure(r.Jobs[job].Sum))
		})
		return v
	}
	return text(of(func(c counts) int { return c.Missed }), of(func(c counts) int { return c.Doubled }), of(func(c counts) int { return c.OffGrid }))
}

// sum is the median of a figure of some jobs of the plain story, added up.
func (g group) sum(figure func(*verdict) int, jobs ...string) string {
	v, ok := g.median(plain, func(r *result) (sum float64) {
		for _, name := range jobs {
			sum += float64(figure(r.Jobs[name]))
		}
		return sum
	})
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%g", v)
}

func row(w io.Writer, cells ...string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }

func head(w io.Writer, titles ...string) {
	row(w, append([]string{""}, titles...)...)
	fmt.Fprintf(w, "|---|%s\n", strings.Repeat("---:|", len(titles)))
}

func printTables(w io.Writer, all []*result) {
	groups := groupsOf(all)
	there := slices.DeleteFunc(slices.Clone(names), func(p string) bool { return groups[p] == nil })
	var titles []string
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	fmt.Fprint(w, "\nSlots missed / doubled / off the grid:\n\n")
	head(w, append(titles, "a dropped job ran", "silence, s", "work lost")...)
	for _, p := range there {
		g := groups[p]
		cells := []string{p}
		for _, c := range columns {
			cells = append(cells, g.cell(c.story, c.job, ""))
		}
		silence, _ := g.median(plain, func(r *result) float64 { return r.Jobs[second].Silence })
		row(w, append(cells, g.sum(func(v *verdict) int { return v.Strays }, dropped), fmt.Sprintf("%.1f", silence),
			g.sum(func(v *verdict) int { return v.Lost }, long, overrun))...)
	}
	for _, job := range []string{second, five} {
		fmt.Fprintf(w, "\nThe job %s by the acts of the story:\n\n", job)
		head(w, acts...)
		for _, p := range there {
			cells := []string{p}
			for _, a := range acts {
				cells = append(cells, groups[p].cell(plain, job, a))
			}
			row(w, cells...)
		}
	}
	fmt.Fprint(w, "\nEach run:\n\n")
	head(w, append(titles, "a dropped job ran", "silence, s", "repeated", "work lost", "longest stall, ms", "busy, cores")...)
	for _, p := range there {
		runs := map[int]map[string]*result{}
		for story, list := range groups[p] {
			for _, r := range list {
				if runs[r.Run] == nil {
					runs[r.Run] = map[string]*result{}
				}
				runs[r.Run][story] = r
			}
		}
		for _, n := range slices.Sorted(maps.Keys(runs)) {
			row(w, append([]string{fmt.Sprintf("%s, %d", p, n)}, eachRun(runs[n])...)...)
		}
	}
}

// eachRun is the figures of one run.
func eachRun(of map[string]*result) (cells []string) {
	stall, busy := 0.0, 0.0
	for _, r := range of {
		stall, busy = max(stall, r.Machine.Stall), max(busy, r.Machine.Busy)
	}
	for _, c := range columns {
		if of[c.story] == nil {
			cells = append(cells, "-")
			continue
		}
		sum := of[c.story].Jobs[c.job].Sum
		cells = append(cells, text(float64(sum.Missed), float64(sum.Doubled), float64(sum.OffGrid)))
	}
	if r := of[plain]; r != nil {
		repeated, lost := 0, 0
		for _, v := range r.Jobs {
			repeated, lost = repeated+v.Repeated, lost+v.Lost
		}
		cells = append(cells, fmt.Sprint(r.Jobs[dropped].Strays), fmt.Sprintf("%.1f", r.Jobs[second].Silence), fmt.Sprint(repeated), fmt.Sprint(lost))
	} else {
		cells = append(cells, "-", "-", "-", "-")
	}
	return append(cells, fmt.Sprintf("%.0f", stall), fmt.Sprintf("%.2f", busy))
}
