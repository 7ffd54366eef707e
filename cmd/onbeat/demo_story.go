package main

import (
	"context"
	"syscall"
	"time"

	"github.com/onbeat/onbeat/internal/trial"
)

// demoTrial is something done to the leader, and the time in which it held up beats.
type demoTrial struct {
	what     string
	from, to time.Time
}

// story is what happens. Every deed waits for a quiet moment: a request that is on its way to a receiver when its
// sender dies is sent again, by attempt 2, which is the promise (at least once) but not what is shown here.
func (d *demo) story(ctx context.Context) error {
	v1, v2, v3 := d.lanes[0], d.lanes[1], d.lanes[2]
	for _, step := range []func(context.Context) error{
		d.rollOut(v1, "v1 starts and leads: its first beat is slot 0 of the grid.",
			"From here on a beat is due each second, whoever is there to play it."),
		d.beats(4),
		d.rollOut(v2, "v2 is rolled out beside v1. The newest leads, from its next beat on; v1 stands by.",
			"With timers in memory, a restart begins to count anew. Here the grid is in Redis."),
		d.beats(3),
		d.strike(v2, v1, trial.SigTerm, "stopped", "SIGTERM to v2, which leads: it is taken back.",
			"It resigns before it does anything else, so v1 leads milliseconds later."),
		d.beats(2),
		d.rollOut(v3, "v3 is rolled out and leads.",
			"Two instances believe in themselves for a moment; Redis lets one of them push and claim."),
		d.beats(3),
		d.strike(v3, v1, trial.SigKill, "killed", "kill -9 on v3, which leads: no goodbye, no handover.",
			"The next beats lie in Redis already. v1 takes over when v3's lease ("+demoLease.String()+") runs out: late, not lost."),
		d.beats(1),
		d.rollOut(v3, "Its supervisor starts v3 again. It is the newest, so it leads.", "No slot moved off the grid meanwhile."),
		d.beats(3),
		d.strike(v3, v1, trial.SigStop, "frozen", "SIGSTOP to v3, which leads: a long pause, as of a virtual machine that is moved.",
			"It does not know that time goes by. Its lease runs out, and v1 takes over."),
		d.beats(2),
		d.thaw(v3, "SIGCONT: v3 wakes and still thinks that it leads.",
			"What it held is void: Redis refuses it. It registers again, as a newer generation, and leads."),
		d.beats(2),
		d.retire(v1, "SIGTERM to v1: the rollout is complete.", "v3 leads alone."),
		d.beats(2),
		d.finish,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// beats waits for n more beats.
func (d *demo) beats(n int) func(context.Context) error {
	return func(ctx context.Context) error {
		want := len(d.rec.Arrivals()) + n
		return d.until(ctx, "the next beat", func(context.Context) (bool, error) {
			return len(d.rec.Arrivals()) >= want, nil
		})
	}
}

// quiet waits for a moment between two beats, in which nothing is due and nobody runs anything.
func (d *demo) quiet(ctx context.Context) error {
	return d.until(ctx, "a quiet moment", func(ctx context.Context) (bool, error) {
		list := d.rec.Arrivals()
		if len(list) == 0 {
			return false, nil
		}
		last := list[len(list)-1]
		if time.Since(last.At) < demoEvery/5 {
			return false, nil
		}
		c, err := d.client.Queue().Counts(ctx)
		if err != nil || c.Running > 0 || c.Overdue > 0 {
			return false, err
		}
		into := time.Since(last.Slot) % demoEvery
		return into > demoEvery/5 && into < demoEvery*3/5, nil
	})
}

// rollOut starts a release, and waits until it leads.
func (d *demo) rollOut(l *demoLane, what, why string) func(context.Context) error {
	return func(ctx context.Context) error {
		if len(d.rec.Arrivals()) > 0 {
			if err := d.quiet(ctx); err != nil {
				return err
			}
		}
		d.show.act(what, why)
		if err := d.start(l); err != nil {
			return err
		}
		return d.leads(ctx, l)
	}
}

// strike sends the leader a signal, and waits until another leads.
func (d *demo) strike(l, heir *demoLane, s syscall.Signal, state, what, why string) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := d.quiet(ctx); err != nil {
			return err
		}
		d.show.act(what, why)
		deed := demoTrial{what: signalName(s), from: time.Now()}
		if err := l.signal(s, state); err != nil {
			return err
		}
		if err := d.leads(ctx, heir); err != nil {
			return err
		}
		deed.to = time.Now()
		d.trials = append(d.trials, deed)
		if s == trial.SigStop {
			return nil
		}
		return l.gone(ctx, state)
	}
}

func signalName(s syscall.Signal) string {
	switch s {
	case trial.SigTerm:
		return "SIGTERM"
	case trial.SigKill:
		return "SIGKILL"
	}
	return "SIGSTOP"
}

// thaw lets a frozen process go on, and waits until it leads again.
func (d *demo) thaw(l *demoLane, what, why string) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := d.quiet(ctx); err != nil {
			return err
		}
		d.show.act(what, why)
		if err := l.signal(trial.SigCont, "starting"); err != nil {
			return err
		}
		return d.leads(ctx, l)
	}
}

// retire stops one that does not lead.
func (d *demo) retire(l *demoLane, what, why string) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := d.quiet(ctx); err != nil {
			return err
		}
		d.show.act(what, why)
		if err := l.signal(trial.SigTerm, "draining"); err != nil {
			return err
		}
		return l.gone(ctx, "stopped")
	}
}

// finish stops what is left, between two beats.
func (d *demo) finish(ctx context.Context) error {
	if err := d.quiet(ctx); err != nil {
		return err
	}
	for _, l := range d.lanes {
		l.mu.Lock()
		there := l.proc != nil
		l.mu.Unlock()
		if !there {
			continue
		}
		if err := l.signal(trial.SigTerm, "draining"); err != nil {
			return err
		}
		if err := l.gone(ctx, "stopped"); err != nil {
			return err
		}
	}
	return nil
}
