package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// lag is S3: tasks are due at random milliseconds, and the start of each handler is compared with that.
var lag = &scenario{
	name: "S3", title: "Lag", once: true,
	columns: append(points("lag"), column{"early", "early"}, column{"sleep_p99_ms", "bare sleep p99, ms"}, column{"ping_p99_ms", "PING p99, ms"}),
	plan: func(quick bool, peer string) (list []params) {
		seconds := sizes(quick, 2, 20)
		for _, rate := range sizes(quick, []int{1000}, []int{100, 1000, 5000}) {
			w := params{Rate: rate, Seconds: seconds, Bytes: 64, Concurrency: 100, Servers: 1}
			polls := peer != "onbeat" && peer != "raw" // as it comes, a peer polls as seldom at any rate: two rates show it
			if polls {
				w.Seconds = max(seconds/2, 2)
			}
			if !polls || rate <= 1000 {
				list = append(list, w)
			}
			if polls && peer != "faktory" { // it looks each five seconds, and has no setting for that
				w.Tuned = true
				list = append(list, w)
			}
		}
		return list
	},
	run: func(ctx context.Context, c *child, p peer) error {
		w := &c.Params
		n := w.Rate * w.Seconds
		from := time.Now().Add(3*time.Second + time.Duration(n)*time.Second/8000).Truncate(time.Millisecond)
		random := rand.New(rand.NewPCG(uint64(c.Run), 42))
		tasks := numbered(n, w.Bytes, func(int) time.Time {
			return from.Add(time.Duration(random.IntN(w.Seconds*1000)) * time.Millisecond)
		})
		if err := fill(ctx, &c.job, p, tasks); err != nil {
			return err
		}
		if time.Until(from) < time.Second {
			return errors.New("adding the tasks took so long that the first are due")
		}
		t := newTally(n)
		late := make([]time.Duration, n)
		s := c.begin(ctx, p.Calls)
		err := p.Dispatch(ctx, c.options(), func(i int) {
			now := time.Now()
			if i >= 0 && i < n {
				late[i] = now.Sub(tasks[i].due)
			}
			t.handle(i)
		})
		if err != nil {
			return err
		}
		if err := t.wait(); err != nil {
			return err
		}
		x := s.end(ctx)
		c.perTask(&x, n)
		early := delays(c.metrics, "lag", late)
		c.metrics["early"] = early
		if c.Peer == "onbeat" && early > 0 { // it promises that there is none; for the others that is a figure
			return fmt.Errorf("%v tasks began before they were due", early)
		}
		return errors.Join(leaves(ctx, p, 0), t.once())
	},
}
