package scenario

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/onbeat/onbeat/bench/peer"
	"github.com/onbeat/onbeat/bench/wire"
)

// cadence is S4: jobs that run each second, or more often, against their ideal grid.
func cadence(ctx context.Context, c *wire.Child) error {
	p, err := peer.Open(ctx, &c.Job)
	if err != nil {
		return err
	}
	defer p.Close()
	q, ok := p.(peer.Cadencer)
	if !ok {
		return fmt.Errorf("%s has no periodic jobs", c.Job.Peer)
	}
	j := &c.Job.Params
	every := time.Second
	if j.BeatMs > 0 {
		every = time.Duration(j.BeatMs) * time.Millisecond
	}
	var mu sync.Mutex
	var beats []peer.Beat
	begin := make(chan struct{})
	var once sync.Once
	stop, err := q.Cadence(ctx, j.Jobs, every, func(b peer.Beat) {
		mu.Lock()
		beats = append(beats, b)
		mu.Unlock()
		once.Do(func() { close(begin) })
	})
	if err != nil {
		return err
	}
	select {
	case <-begin:
	case <-time.After(patience):
		return fmt.Errorf("no job ran in %s", patience)
	}
	time.Sleep(2 * time.Second) // the start-up is not the cadence
	s := c.Begin("", p.Calls)
	from := time.Now()
	time.Sleep(time.Duration(j.Seconds) * time.Second)
	until := time.Now()
	time.Sleep(500 * time.Millisecond) // what is late still counts
	mu.Lock()
	seen := slices.Clone(beats)
	mu.Unlock()
	m, err := judge(seen, j.Jobs, every, from, until)
	s.End(wire.Event{Tasks: int(m["jitter_n"]), Seconds: time.Since(from).Seconds(), Metrics: m})
	if stopped := stop(); err == nil {
		err = stopped
	}
	if wrong := m["missed"] + m["doubled"] + m["early"]; err == nil && c.Job.Peer == "onbeat" && wrong > 0 {
		err = fmt.Errorf("%v slots missed, %v run twice, %v run early", m["missed"], m["doubled"], m["early"])
	}
	return err
}

// judge compares the runs of a time with the grid: how late each was, and which slots are missing or came twice. Only
// onbeat promises that none is, so for the others that is a figure and not an error.
func judge(beats []peer.Beat, jobs int, every time.Duration, from, until time.Time) (wire.Metrics, error) {
	from, until = from.Truncate(every).Add(every), until.Truncate(every)
	slots := make([]map[int64]int, jobs)
	for i := range slots {
		slots[i] = map[int64]int{}
	}
	var late []time.Duration
	for _, b := range beats {
		if b.Slot.Before(from) || !b.Slot.Before(until) {
			continue
		}
		if b.Job < 0 || b.Job >= jobs {
			return nil, fmt.Errorf("a run of job %d, and there is none", b.Job)
		}
		slots[b.Job][b.Slot.UnixMilli()/every.Milliseconds()]++
		late = append(late, b.Start.Sub(b.Slot))
	}
	m := wire.Metrics{"missed": 0, "doubled": 0}
	want := int(until.Sub(from) / every)
	for _, s := range slots {
		m["missed"] += float64(want - len(s))
		for n := range maps.Values(s) {
			m["doubled"] += float64(n - 1)
		}
	}
	quantiles(m, "jitter", late)
	return m, nil
}
