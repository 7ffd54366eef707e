package consumer

import (
	"slices"
	"sync"
)

// Pool is workers that the consumers of several partitions share, in one process. Who finds none free stands in line, and each worker
// that becomes free goes to the one that has waited longest: a partition with much to do holds up no other for longer than a run.
// The dispatcher's own tasks have workers besides, in each partition.
type Pool struct {
	size int

	mu    sync.Mutex
	used  int
	taken map[*Consumer]int // how many of used are a consumer's: its runs, and what it holds for a call
	line  []*Consumer       // those that wait for a worker
}

// NewPool returns a pool of so many workers: the Concurrency of each of its consumers.
func NewPool(workers int) *Pool { return &Pool{size: workers, taken: map[*Consumer]int{}} }

// take gives a consumer up to so many workers more, to hold. Others that wait get no fewer. If there is none and waits is set, the
// consumer stands in line: its bell rings when it should ask again.
func (p *Pool) take(c *Consumer, most int, waits bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(p.line, c)
	ahead := at
	if at < 0 {
		ahead = len(p.line)
	}
	free := p.size - p.used
	n := min(most, free-ahead)
	if n <= 0 {
		if waits && most > 0 && at < 0 {
			p.line = append(p.line, c)
		}
		return 0
	}
	if at >= 0 {
		p.line = slices.Delete(p.line, at, at+1)
	}
	n = min(n, max(free/(len(p.line)+1), 1))
	p.set(c, p.taken[c]+n)
	return n
}

// note says how many workers a consumer uses now.
func (p *Pool) note(c *Consumer, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(c, n)
}

// set changes what a consumer uses, and tells those who wait if a worker is free.
func (p *Pool) set(c *Consumer, n int) {
	p.used += n - p.taken[c]
	p.taken[c] = n
	for _, w := range p.line[:max(min(p.size-p.used, len(p.line)), 0)] {
		select {
		case w.bell <- struct{}{}:
		default: // it rings already
		}
	}
}

// waits reports whether a consumer stands in line.
func (p *Pool) waits(c *Consumer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.line, c)
}

// leave takes a consumer out of the pool.
func (p *Pool) leave(c *Consumer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = slices.DeleteFunc(p.line, func(w *Consumer) bool { return w == c })
	p.set(c, 0)
	delete(p.taken, c)
}
