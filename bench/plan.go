package main

import (
	"slices"

	"github.com/onbeat/onbeat/bench/scenario"
	"github.com/onbeat/onbeat/bench/wire"
)

// cell is one thing to measure, run after run. If it has candidates, the fastest of them is found first.
type cell struct {
	peer, scenario string
	params         wire.Params
	candidates     []wire.Params
}

// sizes are the numbers of a bench.
type sizes struct {
	tasks       int // S1, S2, S8
	lagSeconds  int
	rates       []int
	beatSeconds int
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
		return sizes{1000, 2, []int{100, 500}, 2, []int{1, 20}, 2, []int{3}, []int{200, 1000}, 500, []int{50}, 3, []int{1, 2}}
	case s.quick:
		return sizes{10_000, 2, []int{100, 1000}, 3, []int{1, 200}, 3, []int{10}, []int{1000, 100_000}, 10_000, []int{1000}, 10, []int{1, 2}}
	}
	return sizes{
		100_000, 20, []int{100, 1000, 5000}, 60, []int{1, 1000}, 20, []int{10, 100}, []int{1000, 100_000, 1_000_000, 5_000_000},
		50_000, []int{1000, 10_000, 100_000}, 60, []int{1, 2, 4},
	}
}

// plan lists what is to be measured, scenario by scenario, the peers of one next to each other.
func plan(s *settings) []cell {
	z := sizesOf(s)
	var all []cell
	for _, name := range s.scenarios {
		for _, p := range s.peers {
			stores := []string{"memory"}
			if name == "S1" || name == "S2" {
				stores = s.stores
				if s.quick || s.tiny {
					stores = stores[:1]
				}
			}
			if p == "river" {
				stores = []string{"postgres"}
			}
			for _, store := range stores {
				for _, c := range cells(name, p, z, s) {
					c.peer, c.scenario, c.params.Store = p, name, store
					for i := range c.candidates {
						c.candidates[i].Store = store
					}
					all = append(all, c)
				}
			}
		}
	}
	return all
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
	case "S2":
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
				add(wire.Params{Jobs: n, Seconds: z.beatSeconds})
			}
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
				add(wire.Params{Schedules: n, EveryS: z.every, Concurrency: 100})
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
