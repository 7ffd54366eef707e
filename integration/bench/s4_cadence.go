package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// cadence is S4: jobs that run each second, or more often, against their ideal grid.
var cadence = &scenario{
	name: "S4", title: "Cadence", once: true,
	columns: append(points("jitter"), column{"missed", "missed"}, column{"doubled", "doubled"}, column{"sleep_p99_ms", "bare sleep p99, ms"},
		column{"ping_p99_ms", "PING p99, ms"}),
	plan: func(quick bool, peer string) (list []params) {
		if peer == "raw" || peer == "faktory" { // periodic jobs are for those who pay: https://github.com/contribsys/faktory/wiki/Ent-Cron
			return nil
		}
		seconds := sizes(quick, 3, 60)
		for _, n := range sizes(quick, []int{1, 200}, []int{1, 1000}) {
			w := params{Jobs: n, Seconds: seconds}
			if peer != "onbeat" {
				w.Seconds = max(seconds/2, 2)
			}
			list = append(list, w)
		}
		if peer == "onbeat" { // so many slots that a hundredth of them is not the worst one
			list = append(list, params{Jobs: 1, BeatMs: 100, Seconds: sizes(quick, 3, 20)})
		}
		return list
	},
	run: runCadence,
}

func runCadence(ctx context.Context, c *child, p peer) error {
	w := &c.Params
	every := time.Second
	if w.BeatMs > 0 {
		every = time.Duration(w.BeatMs) * time.Millisecond
	}
	var mu sync.Mutex
	var beats []beat
	begin := make(chan struct{}, 1)
	err := p.(cadencer).Cadence(ctx, w.Jobs, every, func(b beat) {
		mu.Lock()
		beats = append(beats, b)
		mu.Unlock()
		select {
		case begin <- struct{}{}:
		default:
		}
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
	s := c.begin(ctx, p.Calls)
	from := time.Now()
	time.Sleep(time.Duration(w.Seconds) * time.Second)
	until := time.Now()
	time.Sleep(500 * time.Millisecond) // late runs still count
	mu.Lock()
	seen := slices.Clone(beats)
	mu.Unlock()
	s.end(ctx)
	m := c.metrics
	judge(m, seen, w.Jobs, every, from, until)
	if c.Peer == "onbeat" && m["missed"]+m["doubled"]+m["early"] > 0 { // it promises that there is none; for the others these are figures
		return fmt.Errorf("%v slots missed, %v run twice, %v run early", m["missed"], m["doubled"], m["early"])
	}
	return nil
}

// judge compares the runs of a time with the grid: how late each was, and which slots are missing or came twice.
func judge(m metrics, beats []beat, jobs int, every time.Duration, from, until time.Time) {
	from, until = from.Truncate(every).Add(every), until.Truncate(every)
	type slot struct {
		job int
		at  int64
	}
	slots := map[slot]bool{}
	var late []time.Duration
	for _, b := range beats {
		if !b.slot.Before(from) && b.slot.Before(until) {
			slots[slot{b.job, b.slot.UnixMilli() / every.Milliseconds()}] = true
			late = append(late, b.start.Sub(b.slot))
		}
	}
	want := jobs * int(until.Sub(from)/every)
	m["missed"], m["doubled"] = float64(want-len(slots)), float64(len(late)-len(slots))
	m["early"] = delays(m, "jitter", late)
}
