package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/bench/peer"
	"github.com/onbeat/onbeat/bench/wire"
)

// farFuture is when tasks are due that are not to be run.
const farFuture = 30 * 24 * time.Hour

// enqueue is S1: delayed tasks are added, by the peer's best bulk method, or one at a time from several goroutines.
func enqueue(ctx context.Context, c *wire.Child) error {
	p, err := peer.Open(ctx, &c.Job)
	if err != nil {
		return err
	}
	defer p.Close()
	j := &c.Job.Params
	due := time.Now().Add(farFuture)
	// One each of the ways in, so that connections and scripts are there before memory is read.
	if err := bulk(ctx, p, []peer.Task{{N: 0, Bytes: j.Bytes, Due: due}}, 1, 1); err != nil {
		return err
	}
	tasks := numbered(j.Tasks, j.Bytes, func(i int) time.Time { return due.Add(time.Duration(i%100_000) * time.Millisecond) })

	s := c.Begin("", p.Calls)
	if j.How == "one" {
		err = spread(len(tasks), j.Callers, 16, func(from, to int) error {
			for _, t := range tasks[from:to] {
				if err := p.One(ctx, t); err != nil {
					return err
				}
			}
			return nil
		})
	} else {
		err = bulk(ctx, p, tasks, j.Callers, j.Batch)
	}
	if err != nil {
		return err
	}
	seconds := time.Since(s.Began()).Seconds()
	s.End(wire.Event{Tasks: j.Tasks, Seconds: seconds, Metrics: wire.Metrics{"tasks_per_s": float64(j.Tasks) / seconds}})

	left, err := p.Left(ctx)
	if err == nil && left != int64(j.Tasks)+1 {
		err = fmt.Errorf("%d tasks are there after adding %d", left, j.Tasks+1)
	}
	return err
}
