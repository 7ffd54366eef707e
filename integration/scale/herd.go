package main

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"
)

// herd is very many slots on one instant, as one primary and its share of the workers see them. The slots were added before. The primary
// hands out one after the other; each then waits for a worker.
type herd struct {
	slots   int
	jitter  time.Duration // each slot is due up to that much later
	serve   time.Duration // of the primary's core, a task
	workers int
	run     time.Duration // of a worker, a task
}

type lateness struct{ p50, p99, last time.Duration }

// play returns how late the slots begin.
func (h *herd) play() lateness {
	random := rand.New(rand.NewPCG(1, 2))
	due := make([]time.Duration, h.slots)
	for i := range due {
		if h.jitter > 0 {
			due[i] = time.Duration(random.Int64N(int64(h.jitter)))
		}
	}
	slices.Sort(due)
	free := make(times, h.workers) // when each worker is free: all are at first
	late := make([]time.Duration, h.slots)
	var core time.Duration // when the primary has handed out the last one
	for i, at := range due {
		core = max(core, at) + h.serve
		begins := max(core, free[0])
		late[i] = begins - at
		free[0] = begins + h.run
		heap.Fix(&free, 0)
	}
	slices.SortFunc(late, cmp.Compare)
	return lateness{late[len(late)/2], late[len(late)*99/100], late[len(late)-1]}
}

// times is a heap: the earliest first.
type times []time.Duration

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i] < t[j] }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *times) Push(any)          { panic("the number of workers is fixed") }
func (t *times) Pop() any          { panic("the number of workers is fixed") }
