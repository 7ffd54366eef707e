package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/onbeat/onbeat/schedule"
)

// calls draws the calls of people and programs.
func (d *drawer) calls(types []string) {
	p := d.p
	for i := range d.rng.IntN(12) {
		does := d.behaviour(500 * time.Millisecond)
		s := step{
			At: d.moment(), Do: "enqueue", Name: fmt.Sprintf("t%d", i), N: pick(d, 1, 1, 5, 30, 120), Type: pick(d, types...),
			Queue: pick(d, "", "", "q1", "q2"), Prio: pick(d, "", "", "high", "low"), Tries: 1 + d.rng.IntN(4), Does: &does,
		}
		if s.N > 10 && does.Takes.d() > 300*time.Millisecond {
			does.Takes /= 5
		}
		if d.chance(40) {
			s.For = span(d.between(0, 5*time.Second)) // a delay
		}
		if d.chance(25) {
			s.Key = pick(d, "k1", "k2")
			if d.limits[s.Key] == 0 { // all tasks of a key should have the same
				d.limits[s.Key] = 1 + d.rng.IntN(5)
			}
			s.Limit = d.limits[s.Key]
		}
		s.Unique = d.chance(8)
		p.Steps = append(p.Steps, s)
	}
	for range d.rng.IntN(5) {
		p.Steps = append(p.Steps, step{At: d.moment(), Do: "cancel"})
	}
	for range d.rng.IntN(3) {
		p.Steps = append(p.Steps, step{At: d.moment(), Do: "retry"})
	}
	for range d.rng.IntN(6) {
		t := pick(d, p.Schedules...)
		at := d.moment()
		applied := !slices.Contains(p.Processes[0].Declares, t.Name) // a release would declare it again
		switch d.rng.IntN(6) {
		case 0:
			p.Steps = append(p.Steps, step{At: at, Do: "pause", Name: t.Name},
				step{At: at + span(d.between(500*time.Millisecond, 10*time.Second)), Do: "resume", Name: t.Name})
		case 1:
			if !applied {
				continue
			}
			does := d.behaviour(time.Second)
			p.Steps = append(p.Steps, step{At: at, Do: "change", Name: t.Name, Does: &does})
		case 2:
			p.Steps = append(p.Steps, step{At: at, Do: "trigger", Name: t.Name})
		case 3, 4:
			n := 1 + d.rng.IntN(30)
			if t.Overlap != schedule.OverlapAllow { // its runs follow each other, so each must end
				n = min(n, 1+int(20*time.Second/max(t.Does.Takes.d(), time.Millisecond)))
			}
			p.Steps = append(p.Steps, step{At: at, Do: "backfill", Name: t.Name, N: n})
		case 5:
			if applied && t.Every > 0 && t.Jitter == 0 {
				p.Steps = append(p.Steps, step{At: at, Do: "change", Name: t.Name, Every: pick(d, t.Every*2, t.Every+span(50*time.Millisecond), span(time.Second))})
			}
		}
	}
}

// faults draws the faults of single processes.
func (d *drawer) faults() {
	p := d.p
	for range 1 + d.rng.IntN(4) {
		s := step{At: d.moment(), Process: pick(d, d.names()...), For: span(d.between(50*time.Millisecond, 12*time.Second))}
		switch d.rng.IntN(9) {
		case 0, 1:
			s.Do, s.For = "crash", 0
			q := *p.process(s.Process) // its supervisor starts it again
			d.replicas(q, 1, s.At.d()+d.between(500*time.Millisecond, 20*time.Second))
		case 2, 3:
			s.Do = "freeze"
		case 4:
			s.Do, s.Name = "cut", pick(d, "up", "down", "both", "refuse")
		case 5:
			s.Do, s.For = "break", 0
		case 6:
			s.Do, s.Back = "slow", span(d.between(5*time.Millisecond, 400*time.Millisecond))
		case 7, 8:
			s.Do = "deaf"
		}
		p.Steps = append(p.Steps, s)
	}
}

// redisFaults draws the faults of Redis, which all processes feel.
func (d *drawer) redisFaults() {
	for range 1 + d.rng.IntN(2) {
		s := step{At: d.moment(), For: span(d.between(20*time.Millisecond, 8*time.Second))}
		switch d.rng.IntN(9) {
		case 0, 1:
			s.Do = "away"
		case 2:
			s.Do, s.Back = "rewind", span(d.between(10*time.Millisecond, 3*time.Second))
		case 3:
			s.Do = "empty"
		case 4:
			s.Do = "hang"
		case 5:
			s.Do = "flush scripts"
		case 6, 7:
			s.Do = "full"
		case 8:
			s.Do, s.Back = "clock", span(pick(d, -1, 1)*int(d.between(time.Millisecond, 10*time.Second)))
		}
		d.p.Steps = append(d.p.Steps, s)
	}
}

// requests draws what people ask of processes.
func (d *drawer) requests() {
	for range 1 + d.rng.IntN(3) {
		s := step{At: d.moment(), Do: pick(d, "resign", "resign", "drain"), Process: pick(d, d.names()...)}
		d.p.Steps = append(d.p.Steps, s)
		if s.Do == "drain" {
			d.startsAgain(s.Process, s.At.d())
		}
	}
}

// startsAgain draws that a supervisor starts a process again that was lost or left: the end of a plan needs one.
func (d *drawer) startsAgain(name string, gone time.Duration) {
	again := *d.p.process(name)
	again.Standby = false // it may be the last process that is there
	d.replicas(again, 1, gone+d.between(500*time.Millisecond, 20*time.Second))
}

// losses draws faults that make one process suspect another, or must not.
func (d *drawer) losses() {
	for range 1 + d.rng.IntN(3) {
		s := step{At: d.moment(), Do: pick(d, "crash leader", "crash leader", "freeze leader", "unheard", "kick")}
		switch s.Do {
		case "crash leader":
			d.startsAgain(pick(d, d.names()...), s.At.d())
		case "freeze leader":
			s.For = span(d.between(50*time.Millisecond, 12*time.Second))
		case "unheard":
			s.Process, s.For = pick(d, d.names()...), span(d.between(50*time.Millisecond, 8*time.Second))
		}
		d.p.Steps = append(d.p.Steps, s)
	}
}
