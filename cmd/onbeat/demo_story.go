package main

import (
	"context"
	"syscall"
	"time"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/conformance"
	"github.com/onbeat/onbeat/internal/trial"
)

// demoStep is one event of the demo, and how many beats are played after it.
type demoStep struct {
	what, why string
	do        func(context.Context) error
	beats     int
	tells     bool // tells first how long the beat paused at the last loss of a leader
}

// steps returns the events of the demo, in order.
func (d *demo) steps() []demoStep {
	v1, v2, v3 := d.lanes[0], d.lanes[1], d.lanes[2]
	return []demoStep{
		{
			"v1 starts and leads: its first beat is slot 0 of the grid.",
			"From here on a beat is due each second, whichever instance plays it.", d.rollOut(v1), 4, false,
		},
		{
			"v2 is rolled out beside v1. The newest leads, from its next beat on; v1 stands by.",
			"With timers in memory, a restart would begin a new count. Here the grid is in Redis.", d.rollOut(v2), 3, false,
		},
		{
			"SIGTERM to v2, which leads: a rollback.",
			"It resigns before it does anything else, so v1 leads milliseconds later.", d.depose(v2, v1, trial.SigTerm), 2, false,
		},
		{
			"v3 is rolled out and leads.",
			"For a moment two instances believe that they lead; Redis lets only one of them push and claim.", d.rollOut(v3), 3, false,
		},
		{
			"kill -9 on v3, which leads: no goodbye, no handover.",
			"Redis has the next beats already. v1 takes over: a beat may be late, none is lost.",
			d.depose(v3, v1, trial.SigKill), 1, false,
		},
		{
			"Its supervisor starts v3 again. It is the newest, so it leads.",
			"No slot moved off the grid.", d.rollOut(v3), 3, true,
		},
		{
			"SIGSTOP to v3, which leads: a long pause, like that of a virtual machine that is moved.",
			"v3 does not notice that time passes. v1 takes over, and v3's lease (" + demoLoad.Lease.String() + ") runs out.",
			d.freeze(v3, v1), 2, false,
		},
		{
			"SIGCONT: v3 wakes and still thinks that it leads.",
			"Its lease and claims are void: Redis refuses its calls. It registers again, and leads.", d.thaw(v3), 2, true,
		},
		{
			"SIGTERM to v1: the rollout is complete.", "v3 leads alone.",
			func(ctx context.Context) error { return d.stage.Stop(ctx, v1.instance) }, 2, false,
		},
	}
}

// story plays all steps. Each step waits for a quiet moment: if an instance dies while its request is on its way to the receiver,
// attempt 2 sends the request again. That keeps the promise (at least once), but it is not what the demo shows.
func (d *demo) story(ctx context.Context, stage *conformance.Stage) error {
	d.stage, d.show.arrivals = stage, stage.Arrivals
	for i, step := range d.steps() {
		if i > 0 {
			if err := d.quiet(ctx); err != nil {
				return err
			}
		}
		why := step.why
		if step.tells {
			why = d.lost[len(d.lost)-1].words(d.stage.Arrivals()) + " " + why
		}
		d.show.act(step.what, why)
		if err := step.do(ctx); err != nil {
			return err
		}
		if err := d.beats(ctx, step.beats); err != nil {
			return err
		}
	}
	return d.quiet(ctx)
}

// beats waits for n more beats.
func (d *demo) beats(ctx context.Context, n int) error {
	want := len(d.stage.Arrivals()) + n
	return d.stage.Wait(ctx, "the next beat", func(context.Context) (bool, error) {
		return len(d.stage.Arrivals()) >= want, nil
	})
}

// quiet waits for a moment between two beats, in which no task is due and no task runs.
func (d *demo) quiet(ctx context.Context) error {
	return d.stage.Wait(ctx, "a quiet moment", func(ctx context.Context) (bool, error) {
		list := d.stage.Arrivals()
		last := list[len(list)-1]
		if time.Since(last.At) < demoEvery/5 {
			return false, nil
		}
		c, err := d.stage.Activity.Counts(ctx)
		if err != nil || c.Running > 0 || c.Waiting > 0 {
			return false, err
		}
		into := time.Since(last.Slot) % demoEvery
		return into > demoEvery/5 && into < demoEvery*3/5, nil
	})
}

// rollOut starts a release, and waits until it leads.
func (d *demo) rollOut(l *demoLane) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := l.start(d.stage); err != nil {
			return err
		}
		return d.stage.Leads(ctx, l.instance)
	}
}

// depose sends the leader a signal, and waits until another leads.
func (d *demo) depose(l, heir *demoLane, sig syscall.Signal) func(context.Context) error {
	return func(ctx context.Context) error {
		if sig != trial.SigTerm {
			d.lost = append(d.lost, demoLoss{sig, time.Now()})
		}
		return d.stage.Depose(ctx, l.instance, heir.instance, sig)
	}
}

// freeze stops the leader for longer than its lease.
func (d *demo) freeze(l, heir *demoLane) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := d.depose(l, heir, trial.SigStop)(ctx); err != nil {
			return err
		}
		return d.stage.Lost(ctx, l.instance)
	}
}

// thaw lets a frozen instance go on, and waits until it leads again.
func (d *demo) thaw(l *demoLane) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := l.instance.Signal(trial.SigCont); err != nil {
			return err
		}
		l.state = "starting"
		return d.stage.Leads(ctx, l.instance)
	}
}
