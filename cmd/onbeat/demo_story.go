package main

import (
	"context"
	"syscall"
	"time"

	"github.com/onbeat/onbeat/conformance"
	"github.com/onbeat/onbeat/internal/trial"
)

// demoStep is one thing that happens, and how many beats are played after it.
type demoStep struct {
	what, why string
	do        func(context.Context) error
	beats     int
}

// steps are what happens, in order.
func (d *demo) steps() []demoStep {
	v1, v2, v3 := d.lanes[0], d.lanes[1], d.lanes[2]
	return []demoStep{
		{
			"v1 starts and leads: its first beat is slot 0 of the grid.",
			"From here on a beat is due each second, whoever is there to play it.", d.rollOut(v1), 4,
		},
		{
			"v2 is rolled out beside v1. The newest leads, from its next beat on; v1 stands by.",
			"With timers in memory, a restart begins to count anew. Here the grid is in Redis.", d.rollOut(v2), 3,
		},
		{
			"SIGTERM to v2, which leads: it is taken back.",
			"It resigns before it does anything else, so v1 leads milliseconds later.", d.depose(v2, v1, trial.SigTerm), 2,
		},
		{
			"v3 is rolled out and leads.",
			"Two instances believe in themselves for a moment; Redis lets one of them push and claim.", d.rollOut(v3), 3,
		},
		{
			"kill -9 on v3, which leads: no goodbye, no handover.",
			"The next beats lie in Redis already. v1 takes over when v3's lease (" + demoLoad.Lease.String() + ") runs out: late, not lost.",
			d.depose(v3, v1, trial.SigKill), 1,
		},
		{
			"Its supervisor starts v3 again. It is the newest, so it leads.",
			"No slot moved off the grid meanwhile.", d.rollOut(v3), 3,
		},
		{
			"SIGSTOP to v3, which leads: a long pause, as of a virtual machine that is moved.",
			"It does not know that time goes by. Its lease runs out, and v1 takes over.", d.depose(v3, v1, trial.SigStop), 2,
		},
		{
			"SIGCONT: v3 wakes and still thinks that it leads.",
			"What it held is void: Redis refuses it. It registers again, as a newer generation, and leads.", d.thaw(v3), 2,
		},
		{
			"SIGTERM to v1: the rollout is complete.", "v3 leads alone.",
			func(ctx context.Context) error { return d.stage.Stop(ctx, v1.instance) }, 2,
		},
	}
}

// story plays all steps. Each waits for a quiet moment: a request that is on its way to a receiver when its sender dies
// is sent again, by attempt 2, which is the promise (at least once) but not what is shown here.
func (d *demo) story(ctx context.Context, stage *conformance.Stage) error {
	d.stage, d.show.arrivals = stage, stage.Arrivals
	for i, step := range d.steps() {
		if i > 0 {
			if err := d.quiet(ctx); err != nil {
				return err
			}
		}
		d.show.act(step.what, step.why)
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

// quiet waits for a moment between two beats, in which nothing is due and nothing runs.
func (d *demo) quiet(ctx context.Context) error {
	return d.stage.Wait(ctx, "a quiet moment", func(ctx context.Context) (bool, error) {
		list := d.stage.Arrivals()
		last := list[len(list)-1]
		if time.Since(last.At) < demoEvery/5 {
			return false, nil
		}
		c, err := d.stage.Activity.Counts(ctx)
		if err != nil || c.Running > 0 || c.Overdue > 0 {
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
	return func(ctx context.Context) error { return d.stage.Depose(ctx, l.instance, heir.instance, sig) }
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
