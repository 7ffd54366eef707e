package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/schedule"
)

// draw makes the plan of a seed.
func draw(seed uint64) *plan {
	d := &drawer{rng: rand.New(rand.NewPCG(seed, 2)), p: &plan{Seed: seed}, limits: map[string]int{}}
	d.plan()
	return d.p
}

type drawer struct {
	rng *rand.Rand
	p   *plan
	end time.Duration // no step begins after it

	limits map[string]int // of keys
}

func (d *drawer) chance(percent int) bool { return d.rng.IntN(100) < percent }

func (d *drawer) between(from, to time.Duration) time.Duration {
	return from + time.Duration(d.rng.Int64N(int64(to-from)+1)).Truncate(time.Millisecond)
}

func (d *drawer) moment() span { return span(d.between(2*time.Second, d.end)) }

func pick[T any](d *drawer, list ...T) T { return list[d.rng.IntN(len(list))] }

func (d *drawer) plan() {
	p := d.p
	d.end = d.between(20*time.Second, 3*time.Minute)
	p.For = span(d.end + 10*time.Second)
	p.Latency = span(d.between(100*time.Microsecond, 3*time.Millisecond))
	if d.chance(20) { // in New York the clocks change within the first minutes
		p.Begin = pick(d, "2000-04-02T06:58:00Z", "2000-10-29T05:58:30Z")
	}
	types := []string{"a", "b", "c"}[:1+d.rng.IntN(3)]
	if d.chance(40) {
		p.Limits = map[string]int{types[0]: 1 + d.rng.IntN(5)}
	}
	d.schedules(types)
	d.processes(types)
	d.calls(types)
	d.fit()
	if d.chance(60) {
		d.faults()
	}
	if d.chance(25) {
		d.redisFaults()
	}
	if d.chance(25) {
		d.requests()
	}
	if d.chance(40) {
		d.losses()
	}
	slices.SortStableFunc(p.Steps, func(a, b step) int { return int(a.At - b.At) })
	p.Encrypted = d.chance(25)
}

// mostSlots is about how many slots a plan has at most. Long plans find fewer faults in the same time.
const mostSlots = 1500

// fit slows down schedules that would have too many slots, and shortens runs that would always keep all workers busy.
func (d *drawer) fit() {
	p := d.p
	load := 0.0
	for i := range p.Schedules {
		t := &p.Schedules[i]
		every := 10 * time.Second
		if t.Every > 0 {
			for p.For.d()/t.Every.d() > time.Duration(mostSlots/len(p.Schedules)) {
				t.Every *= 2
			}
			every = t.Every.d()
		}
		longest := t.Does.load()
		for _, does := range t.Versions {
			longest = max(longest, does.load())
		}
		load += float64(longest) / float64(every)
	}
	workers := float64(p.Processes[0].Concurrency)
	for _, n := range p.Limits {
		workers = min(workers, float64(n))
	}
	for most := 0.6 * workers; load > most; load /= 2 {
		for i := range p.Schedules {
			t := &p.Schedules[i]
			t.Does.Takes /= 2
			for release, does := range t.Versions {
				does.Takes /= 2
				t.Versions[release] = does
			}
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if t := p.timetable(s.Name); t != nil && s.Does != nil { // the step changes a schedule
			s.Does.Takes = min(s.Does.Takes, max(t.Does.Takes, t.Every/4))
		}
		if s.Do != "enqueue" {
			continue
		}
		lanes := workers
		if s.Key != "" {
			lanes = min(lanes, float64(s.Limit))
		}
		for s.Does != nil && float64(s.N)*s.Does.Takes.d().Seconds()*float64(1+s.Does.Fails)/lanes > 15 {
			s.Does.Takes /= 2
		}
	}
}

// load returns how long a slot keeps a worker busy, with all its attempts.
func (b *behaviour) load() time.Duration { return b.Takes.d() * time.Duration(1+b.Fails) }

func (d *drawer) behaviour(every time.Duration) behaviour {
	b := behaviour{}
	switch d.rng.IntN(6) {
	case 0, 1:
	case 2, 3:
		b.Takes = span(d.between(time.Millisecond, max(every/2, 2*time.Millisecond)))
	case 4:
		b.Takes = span(d.between(every/2, 3*every))
	case 5:
		b.Takes = span(d.between(time.Millisecond, 2*time.Second))
	}
	if d.chance(25) {
		b.Fails, b.Nth, b.Retry = 1+d.rng.IntN(2), int64(1+d.rng.IntN(4)), span(d.between(10*time.Millisecond, 2*time.Second))
		b.Panics = d.chance(20)
	}
	b.Ignores = d.chance(7)
	b.Effect = d.chance(20)
	b.Takes = min(b.Takes, span(5*time.Second))
	return b
}

// schedules draws the schedules. Most are declared by every process; some belong to one release, or are applied by a step.
func (d *drawer) schedules(types []string) {
	for i := range 1 + d.rng.IntN(5) {
		t := timetable{Name: fmt.Sprintf("s%d", i), Type: pick(d, types...)}
		every := pick(d, 50, 100, 100, 200, 500, 1000, 1000, 2000, 5000, 60_000)
		if d.chance(12) {
			t.Cron, t.Zone = pick(d, "*/5 * * * * *", "0 * * * * *", "30 */2 * * * *", "0 30 2 * * *", "*/10 59,0,1 1-3 * * *"), "America/New_York"
			every = 5000
		} else {
			t.Every = span(time.Duration(every) * time.Millisecond)
			t.Start = pick(d, "", "", "aligned")
			if d.chance(15) {
				t.Jitter = span(d.between(time.Millisecond, t.Every.d()))
			}
		}
		t.Missed = pick(d, schedule.MissedOnce, schedule.MissedAll, schedule.MissedSkip)
		t.Overlap = pick(d, schedule.OverlapAllow, schedule.OverlapAllow, schedule.OverlapSkip, schedule.OverlapQueue, schedule.OverlapReplace)
		if t.Missed == schedule.MissedAll && d.chance(40) {
			t.CatchUp = span(d.between(2*time.Second, time.Minute))
		}
		if d.chance(8) {
			t.MaxRuns = int64(1 + d.rng.IntN(60))
		}
		if d.chance(8) {
			t.Until = span(d.between(5*time.Second, d.end))
		}
		t.Queue = pick(d, "", "", "", "q1", "q2")
		t.Priority = pick(d, "", "", "", "high", "low")
		t.Attempts = pick(d, 0, 0, 1, 2)
		t.Does = d.behaviour(time.Duration(every) * time.Millisecond)
		if d.chance(20) {
			t.Versions = map[string]behaviour{"v2": d.behaviour(time.Duration(every) * time.Millisecond)}
		}
		d.p.Schedules = append(d.p.Schedules, t)
	}
}

// processes draws the processes: some replicas of a release, and how the plan goes on with them.
func (d *drawer) processes(types []string) {
	p := d.p
	lease := pick(d, 500*time.Millisecond, time.Second, time.Second, 2*time.Second, 5*time.Second)
	base := process{
		Release: "v1", Lead: pick(d, instance.LeadNewest, instance.LeadSticky),
		Consume: pick(d, instance.ConsumeNewest, instance.ConsumeRelease, instance.ConsumeRelease, instance.ConsumeAll),
		Lease:   span(lease), Drain: span(pick(d, 200*time.Millisecond, 2*time.Second, 30*time.Second)),
		Concurrency: pick(d, 1, 2, 5, 10, 20), Types: types,
	}
	if d.chance(50) {
		base.MinReady = span(d.between(100*time.Millisecond, 4*time.Second))
	}
	if d.chance(25) {
		base.Queues = map[string]int{"default": 1 + d.rng.IntN(5), "q1": 1 + d.rng.IntN(5), "q2": 1}
		base.Strict = d.chance(40)
	}
	for i := range p.Schedules {
		if d.chance(80) {
			base.Declares = append(base.Declares, p.Schedules[i].Name)
		} else {
			p.Steps = append(p.Steps, step{At: d.moment(), Do: "apply", Name: p.Schedules[i].Name})
		}
	}
	d.replicas(base, 1+d.rng.IntN(5), 0)
	switch d.rng.IntN(7) {
	case 0, 1:
		d.rollout(base, "v2", false)
	case 2:
		d.rollout(base, "v2", true)
	case 3:
		d.recreate(base)
	case 4:
		d.scale(base)
	case 5:
		d.crashLoop(base)
	}
}

// replicas adds processes of one kind, which differ where replicas may differ.
func (d *drawer) replicas(base process, n int, from time.Duration) (names []string) {
	for range n {
		q := base
		q.Name = fmt.Sprintf("p%d", len(d.p.Processes))
		q.Start = span(from + d.between(0, 500*time.Millisecond))
		if d.chance(40) {
			q.CheckTakes = span(d.between(time.Millisecond, 800*time.Millisecond))
		}
		if d.chance(20) {
			q.CheckFails = span(d.between(100*time.Millisecond, 3*time.Second))
		}
		if n > 1 && len(names) > 0 {
			q.Standby = d.chance(15)
			// A process that lacks a type. If only the leader works, no process would handle the type while this one leads.
			if len(q.Types) > 1 && base.Consume != instance.ConsumeNewest && d.chance(25) {
				q.Types = slices.Clone(q.Types[:len(q.Types)-1])
			}
		}
		d.p.Processes = append(d.p.Processes, q)
		names = append(names, q.Name)
	}
	return names
}

func (d *drawer) stopAll(names []string, at, apart time.Duration) {
	for i, name := range names {
		d.p.Steps = append(d.p.Steps, step{At: span(at + time.Duration(i)*apart), Do: "stop", Process: name})
	}
}

func (d *drawer) names() (names []string) {
	for i := range d.p.Processes {
		names = append(names, d.p.Processes[i].Name)
	}
	return names
}

// rollout starts a newer release beside the older one, which then leaves. A rollout that is undone ends the other way.
func (d *drawer) rollout(base process, release string, undone bool) {
	old := d.names()
	at := d.between(4*time.Second, d.end/2)
	next := base
	next.Release = release
	if d.chance(40) && len(d.p.Schedules) > 1 && len(next.Declares) > 1 { // the newer release drops a schedule
		next.Declares = slices.Clone(next.Declares[1:])
	}
	if d.chance(30) {
		next.Lead, next.Consume = pick(d, instance.LeadNewest, instance.LeadSticky), pick(d, instance.ConsumeNewest, instance.ConsumeRelease, instance.ConsumeAll)
	}
	fresh := d.replicas(next, max(1, len(old)+d.rng.IntN(2)-d.rng.IntN(2)), at)
	stays := at + base.MinReady.d() + 6*time.Second + d.between(0, 10*time.Second)
	if undone {
		d.stopAll(fresh, stays, d.between(0, time.Second))
		return
	}
	d.stopAll(old, stays, d.between(0, time.Second))
}

// recreate stops all processes, and starts them again after a while.
func (d *drawer) recreate(base process) {
	at := d.between(4*time.Second, d.end/2)
	crash := d.chance(40)
	for _, name := range d.names() {
		s := step{At: span(at), Do: "stop", Process: name}
		if crash {
			s.Do = "crash"
		}
		d.p.Steps = append(d.p.Steps, s)
	}
	again := base
	if d.chance(50) {
		again.Release = "v2"
	}
	d.replicas(again, 1+d.rng.IntN(3), at+d.between(0, 20*time.Second))
}

// scale adds replicas, or stops some.
func (d *drawer) scale(base process) {
	at := d.between(4*time.Second, d.end/2)
	some := d.replicas(base, 1+d.rng.IntN(3), at)
	d.stopAll(some[:d.rng.IntN(len(some)+1)], at+d.between(5*time.Second, 20*time.Second), d.between(0, time.Second))
}

// crashLoop starts a newer release that crashes soon after each start.
func (d *drawer) crashLoop(base process) {
	at := d.between(4*time.Second, d.end/2)
	next := base
	next.Release = "v2"
	if d.chance(60) {
		next.MinReady = 0
	}
	for range 2 + d.rng.IntN(5) {
		for _, name := range d.replicas(next, 1, at) {
			at += d.between(time.Second, 4*time.Second)
			d.p.Steps = append(d.p.Steps, step{At: span(at), Do: "crash", Process: name})
		}
	}
}
