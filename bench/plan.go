package main

import (
	"slices"

	"github.com/onbeat/onbeat/bench/scenario"
	"github.com/onbeat/onbeat/bench/wire"
)

// cell is one thing to measure, run after run; scenarios that are compared with one another take turns in it. If it has
// candidates, the fastest of them is found first.
type cell struct {
	peer       string
	scenarios  []string
	params     wire.Params
	candidates []wire.Params
	runs       int
}

// sizes are the numbers of a bench.
type sizes struct {
	tasks       int // S1, S2, S8
	lagSeconds  int
	rates       []int
	beatSeconds int
	quickBeat   int // seconds of the beat that has ten slots a second
	beatJobs    []int
	idleSeconds int
	instances   []int
	backlogs    []int
	growthTasks int
	schedules   []int
	every       int
	processes   []int
}

func sizesOf(s *settings) sizes {
	switch {
	case s.tiny:
		return sizes{1000, 2, []int{100, 500}, 2, 1, []int{1, 20}, 2, []int{3}, []int{200, 1000}, 500, []int{50}, 3, []int{1, 2}}
	case s.quick:
		return sizes{10_000, 2, []int{100, 1000}, 3, 3, []int{1, 200}, 3, []int{10}, []int{1000, 100_000}, 10_000, []int{1000}, 10, []int{1, 2}}
	}
	return sizes{
		100_000, 20, []int{100, 1000, 5000}, 60, 20, []int{1, 1000}, 20, []int{10, 100}, []int{1000, 100_000, 1_000_000, 5_000_000},
		50_000, []int{1000, 10_000, 100_000}, 60, []int{1, 2, 4},
	}
}

// plan lists what is to be measured, scenario by scenario, the peers of one next to each other.
func plan(s *settings) []cell {
	z := sizesOf(s)
	both := slices.Contains(s.scenarios, "S2") && slices.Contains(s.scenarios, "S2t")
	var all []cell
	for _, name := range s.scenarios {
		if name == "S2t" && both {
			continue // takes turns with S2
		}
		for _, p := range s.peers {
			for _, store := range storesOf(s, name, p) {
				for _, c := range cells(name, p, z, s) {
					c.peer, c.scenarios, c.params.Store = p, []string{name}, store
					if both && name == "S2" && p != "raw" && store != "aof" {
						c.scenarios = append(c.scenarios, "S2t")
					}
					for i := range c.candidates {
						c.candidates[i].Store = store
					}
					if c.runs = s.runs; c.runs <= 0 {
						c.runs = runsOf(name, p, c.params)
					}
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// storesOf are the kinds of server that a scenario is measured on.
func storesOf(s *settings, name, p string) []string {
	switch {
	case p == "river":
		return []string{"postgres"}
	case name != "S1" && name != "S2":
		return []string{"memory"}
	case s.quick || s.tiny:
		return s.stores[:1]
	}
	return s.stores
}

// runsOf is how often a thing is measured, if nobody says so: three times where a median is needed. A peer's delays and its
// idle commands come from its polling, and are far from every limit; S6 compares sizes of one peer.
func runsOf(name, p string, w wire.Params) int {
	switch name {
	case "S3", "S4", "S5":
		if p != "onbeat" && p != "raw" {
			return 1
		}
	case "S6":
		if p != "onbeat" || w.Backlog > 1_000_000 { // which take minutes
			return 1
		}
	}
	return 3
}

// cells are those of one scenario and peer.
func cells(name, p string, z sizes, s *settings) (list []cell) {
	add := func(w wire.Params) { list = append(list, cell{params: w}) }
	switch name {
	case "S1":
		callers, batch := scenario.Bulk(p)
		add(wire.Params{How: "bulk", Tasks: z.tasks, Bytes: 64, Callers: callers, Batch: batch})
		add(wire.Params{How: "one", Tasks: z.tasks, Bytes: 64, Callers: 16})
		add(wire.Params{How: "bulk", Tasks: z.tasks, Bytes: 1024, Callers: callers, Batch: batch})
	case "S2", "S2t":
		if name == "S2t" && p == "raw" { // it has no handlers
			return nil
		}
		for _, n := range []int{10, 100} {
			w := wire.Params{Tasks: z.tasks, Bytes: 64, Concurrency: n, Servers: 1}
			if p == "river" { // which takes so many each 100 ms, and no more
				w.Tasks = min(w.Tasks, 200*n)
			}
			add(w)
		}
		best := wire.Params{Tasks: z.tasks, Bytes: 64, Best: true}
		try := candidates(p, best)
		if s.quick {
			try = slices.DeleteFunc(try, func(w wire.Params) bool { return !likely(p, w) })
		}
		list = append(list, cell{params: best, candidates: try})
	case "S3":
		for _, rate := range few(s, p, z.rates) {
			w := wire.Params{Rate: rate, Seconds: z.lagSeconds, Bytes: 64, Concurrency: 100, Servers: 1}
			polls := p != "onbeat" && p != "raw" // as it comes, as seldom at any rate: two of them show it
			if polls {
				w.Seconds = max(z.lagSeconds/2, 2) // twice what asynq, which is the slowest, waits between two polls
			}
			if !polls || rate <= 1000 {
				add(w)
			}
			if polls {
				w.Tuned = true
				add(w)
			}
		}
	case "S4":
		for _, n := range few(s, p, z.beatJobs) {
			if p != "raw" {
				w := wire.Params{Jobs: n, Seconds: z.beatSeconds}
				if p != "onbeat" {
					w.Seconds = max(z.beatSeconds/2, 2)
				}
				add(w)
			}
		}
		if p == "onbeat" { // so many slots that a hundredth of them is not the worst one
			add(wire.Params{Jobs: 1, BeatMs: 100, Seconds: z.quickBeat})
		}
	case "S5":
		for _, n := range z.instances {
			if p != "raw" {
				add(wire.Params{Instances: n, Seconds: z.idleSeconds, Concurrency: 10})
			}
			if p == "onbeat" {
				add(wire.Params{Instances: n, Seconds: z.idleSeconds, Concurrency: 10, LeaseMs: 15_000})
			}
		}
		if p == "onbeat" {
			add(wire.Params{Instances: 3, Seconds: z.idleSeconds, BeatMs: 100})
		}
	case "S6":
		for _, n := range z.backlogs {
			if p == "onbeat" || p == "raw" || p == "asynq" && n <= 100_000 {
				w := wire.Params{Backlog: n, Tasks: z.growthTasks, Bytes: 64}
				w.Concurrency, w.Servers = usual(p)
				add(w)
			}
		}
	case "S7":
		if p == "onbeat" {
			for _, n := range z.schedules {
				w := wire.Params{Schedules: n, EveryS: z.every, Concurrency: 100}
				if n < 100_000 {
					w.EveryS = min(z.every, 20) // they need not wait a minute for a slot
				}
				add(w)
			}
		}
	case "S8":
		if p != "river" {
			for _, n := range z.processes {
				w := wire.Params{Tasks: z.tasks, Bytes: 64, Processes: n}
				w.Concurrency, w.Servers = usual(p)
				add(w)
			}
		}
	}
	return list
}

// usual is what a peer does well with, where no search is made.
func usual(p string) (concurrency, servers int) {
	switch p {
	case "onbeat":
		return 1000, 1
	case "raw":
		return 500, 2
	case "asynq":
		return 10, 16
	}
	return 100, 1
}

// candidates are what the search for the best goes through.
func candidates(p string, w wire.Params) (list []wire.Params) {
	w.Best, w.Search = false, true
	w.Tasks /= 2
	try := func(servers int, concurrency ...int) {
		for _, n := range concurrency {
			w.Concurrency, w.Servers = n, servers
			list = append(list, w)
		}
	}
	switch p {
	case "onbeat":
		try(1, 200, 500, 1000, 2000, 4000)
	case "raw":
		try(1, 100, 500, 1000)
		try(2, 100, 500, 1000)
		try(4, 100, 500)
	case "asynq":
		try(1, 25, 50)
		try(4, 10, 25)
		try(8, 10, 25)
		try(16, 5, 10, 25)
		try(32, 10)
	case "bullmq":
		try(1, 50, 200, 500, 1000)
		try(2, 100, 250)
		try(4, 50, 100)
	case "river":
		try(1, 500, 1000, 2000)
		w.Tuned = true
		try(1, 100, 500, 1000)
		try(2, 250, 500)
	}
	return list
}

// few leaves, of a quick bench's sizes, only the largest to the peers.
func few(s *settings, p string, sizes []int) []int {
	if s.quick && p != "onbeat" {
		return sizes[len(sizes)-1:]
	}
	return sizes
}

// likely picks the few candidates of a quick search.
func likely(p string, w wire.Params) bool {
	switch p {
	case "asynq":
		return w.Servers == 16 || w.Servers == 4
	case "bullmq":
		return w.Servers == 4 || w.Concurrency == 200
	case "river":
		return w.Tuned && w.Concurrency >= 500
	}
	return w.Concurrency >= 500 && w.Concurrency <= 1000
}

// skipped removes the cells of peers that cannot run.
func skipped(all []cell, missing map[string]error) []cell {
	return slices.DeleteFunc(all, func(c cell) bool { return missing[c.peer] != nil })
}
