package telemetry

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/producer"
)

// A scrape waits this long for Redis. The reading itself may go on for longer: the next scrape takes it up, so that a namespace
// with very many schedules gets over its first reading.
const (
	scrapeWait = 2 * time.Second
	readWait   = 30 * time.Second
)

// scrape gathers what is read from Redis, and what changes with the time alone.
type scrape struct{ m *Metrics }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	dueDesc       = desc("onbeat_due_tasks", "Tasks whose due time has come and that no instance has claimed.", "queue")
	oldestDesc    = desc("onbeat_oldest_due_age_seconds", "How long the task that is due for longest has waited; 0: none waits.", "queue")
	pendingDesc   = desc("onbeat_pending_tasks", "Tasks that wait, due now or later.", "queue")
	runningDesc   = desc("onbeat_running_tasks", "Tasks that run, on all instances.")
	deadDesc      = desc("onbeat_dead_tasks", "Tasks whose last attempt failed, as far as they are kept.")
	heldDesc      = desc("onbeat_held_tasks", "Due tasks that wait for their key.")
	unhandledDesc = desc("onbeat_unhandled_tasks", "Due tasks that no instance handles which may take work.", "type")
	lanesDesc     = desc("onbeat_lanes", "Lanes in use: combinations of queue, priority and type.")
	schedulesDesc = desc("onbeat_schedules", "Schedules by state.", "state")
	instancesDesc = desc("onbeat_instances", "Instances whose lease holds, by state.", "state")
	freshDesc     = desc("onbeat_schedule_freshness_ratio", "Time since a schedule's last success, divided by the time between two slots.", "schedule")
	slotsDesc     = desc("onbeat_slots_total", "Slots of the namespace by what became of them, since this process started.", "fate")
	leaderDesc    = desc("onbeat_leader", "1 on the instance that leads, 0 on the others; in a namespace that is split, the share of the partitions that this instance leads.")
	epochDesc     = desc("onbeat_epoch", "The number of the leader's term, as this process last heard; in a namespace that is split, the largest.")
	pushDesc      = desc("onbeat_last_push_age_seconds", "How long ago this leader last pushed slots.")
	behindDesc    = desc("onbeat_archive_behind_entries", "Entries that wait in Redis to be archived, on the instance that archives.")
	beatDesc      = desc("onbeat_heartbeat_age_seconds", "How long ago Redis last answered a heartbeat of this process.")
	errorsDesc    = desc("onbeat_scrape_errors_total", "Readings of Redis for these metrics that failed, or that came too late for a part of the history.")
	buildDesc     = desc("onbeat_build_info", "The version of the program and the release that it runs. Always 1.", "version", "release")
)

// Describe implements [prometheus.Collector].
func (s *scrape) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		dueDesc, oldestDesc, pendingDesc, runningDesc, deadDesc, heldDesc, unhandledDesc, lanesDesc, schedulesDesc, instancesDesc, freshDesc,
		slotsDesc, leaderDesc, epochDesc, pushDesc, beatDesc, behindDesc, errorsDesc, buildDesc,
	} {
		ch <- d
	}
}

// gathered is what one reading of Redis found. A part that could not be read is nil.
type gathered struct {
	counts    *queue.Counts
	instances []instance.Info
	following *producer.Following
}

// Collect implements [prometheus.Collector]. Scrapes that come at the same time share one reading.
func (s *scrape) Collect(ch chan<- prometheus.Metric) {
	m := s.m
	out := sender{ch: ch, most: m.opts.Names}
	if g := m.read(); g != nil {
		out.counts(g)
		out.instances(g)
		out.following(g, m.opts.Schedules)
	}
	if f := m.fates.Load(); f != nil { // a counter stays where it was
		for word, n := range f.Fates {
			out.send(slotsDesc, prometheus.CounterValue, float64(n), string(word))
		}
	}
	parts := m.bound()
	o := ownOf(parts)
	out.gauge(leaderDesc, float64(o.led)/float64(max(len(parts), 1)))
	out.gauge(epochDesc, float64(o.epoch))
	if o.hasHeard {
		out.gauge(beatDesc, o.heard)
	}
	if o.hasPush {
		out.gauge(pushDesc, o.pushed)
	}
	if o.archives {
		out.gauge(behindDesc, float64(o.behind))
	}
	out.send(errorsDesc, prometheus.CounterValue, float64(m.scrapeErrors.Load()))
	out.gauge(buildDesc, 1, m.opts.Version, m.opts.Release)
}

// read reads Redis, or waits for the reading that is under way. It returns nil if that takes too long.
func (m *Metrics) read() *gathered {
	if len(m.bound()) == 0 {
		return nil
	}
	wait := time.NewTimer(scrapeWait)
	defer wait.Stop()
	select {
	case r := <-m.reading.DoChan("", func() (any, error) { return m.gather(), nil }):
		g, _ := r.Val.(*gathered)
		return g
	case <-wait.C:
		m.scrapeErrors.Add(1)
		return nil
	}
}

// gather makes one reading. If a part of it fails, the others count all the same. If there are several partitions, all must
// answer: a sum without some would be too small.
func (m *Metrics) gather() *gathered {
	ctx, done := context.WithTimeout(context.Background(), readWait)
	defer done()
	parts := m.bound()
	all := make([]*gathered, len(parts))
	var reading sync.WaitGroup
	for i, p := range parts {
		reading.Go(func() { all[i] = p.gather(ctx) })
	}
	reading.Wait()
	g := all[0]
	whole := g.counts != nil && g.instances != nil && g.following != nil
	for _, other := range all[1:] {
		if whole = whole && other.counts != nil && other.instances != nil && other.following != nil; !whole {
			return &gathered{}
		}
		g.join(other)
	}
	if g.following != nil {
		slices.SortFunc(g.following.Stale, func(a, b producer.Stale) int { return cmp.Compare(a.Schedule, b.Schedule) })
		if was := m.fates.Swap(g.following); was != nil && g.following.Gaps > was.Gaps {
			m.scrapeErrors.Add(1)
		}
	}
	return g
}

// gather reads one partition.
func (p *part) gather(ctx context.Context) *gathered {
	g := &gathered{}
	counts, err1 := p.q.Counts(ctx)
	if err1 == nil {
		g.counts = &counts
	}
	list, err2 := p.reg.List(ctx)
	if err2 == nil {
		g.instances = append([]instance.Info{}, list...)
	}
	following, err3 := p.follower.Follow(ctx)
	if err3 == nil {
		following.Fates = maps.Clone(following.Fates)
		g.following = &following
	}
	if errors.Join(err1, err2, err3) != nil {
		p.m.scrapeErrors.Add(1)
	}
	return g
}

// sender sends metrics to a registry.
type sender struct {
	ch   chan<- prometheus.Metric
	most int // of queues and of types; negative: no bound
}

func (s *sender) send(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
}

func (s *sender) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s.send(d, prometheus.GaugeValue, v, labels...)
}

// backlog is what waits in a queue.
type backlog struct {
	due, pending int64
	oldest       time.Duration
}

func (b *backlog) add(c *backlog) {
	b.due, b.pending, b.oldest = b.due+c.due, b.pending+c.pending, max(b.oldest, c.oldest)
}

func (s *sender) counts(g *gathered) {
	c := g.counts
	if c == nil {
		return
	}
	s.gauge(runningDesc, float64(c.Running))
	s.gauge(deadDesc, float64(c.Dead))
	s.gauge(heldDesc, float64(c.Held))
	s.gauge(lanesDesc, float64(len(c.Lanes)))
	queues := map[string]*backlog{}
	for _, l := range c.Lanes {
		b := &backlog{due: l.Overdue, pending: l.Due}
		if l.Overdue > 0 && !l.Head.IsZero() {
			b.oldest = max(c.Now.Sub(l.Head), 0)
		}
		into(queues, l.Lane.Queue).add(b)
	}
	for name, b := range fold(queues, s.most, (*backlog).add) {
		s.gauge(dueDesc, float64(b.due), name)
		s.gauge(pendingDesc, float64(b.pending), name)
		s.gauge(oldestDesc, b.oldest.Seconds(), name)
	}
}

func (s *sender) instances(g *gathered) {
	if g.instances == nil {
		return
	}
	states := map[string]int{"starting": 0, "ready": 0, "draining": 0}
	var list admin.InstanceList
	for i := range g.instances {
		x := &g.instances[i]
		if _, known := states[x.State]; known && x.Lease > 0 {
			states[x.State]++
		}
		list.Items = append(list.Items, admin.Instance{
			ID: x.ID, Order: x.Order, State: x.State, Leader: x.Leader, Consume: x.Consume, Types: x.Types, Queues: x.Queues,
			LeaseLeftMS: x.Lease.Milliseconds(),
		})
	}
	for state, n := range states {
		s.gauge(instancesDesc, float64(n), state)
	}
	if g.counts == nil {
		return
	}
	types := map[string]*backlog{}
	for _, l := range g.counts.Lanes {
		b := into(types, l.Lane.Type)
		if !list.Handles(l.Lane.Queue, l.Lane.Type) {
			b.add(&backlog{due: l.Overdue})
		}
	}
	for typ, b := range fold(types, s.most, (*backlog).add) {
		s.gauge(unhandledDesc, float64(b.due), typ)
	}
}

func (s *sender) following(g *gathered, most int) {
	f := g.following
	if f == nil {
		return
	}
	s.gauge(schedulesDesc, float64(f.Active), "active")
	s.gauge(schedulesDesc, float64(f.Paused), "paused")
	if g.counts != nil {
		s.gauge(schedulesDesc, float64(g.counts.Retired), "retired")
	}
	rest := -1.0
	for i, x := range f.Stale {
		if most >= 0 && i >= most || x.Schedule == other {
			rest = max(rest, x.Ratio)
			continue
		}
		s.gauge(freshDesc, x.Ratio, x.Schedule)
	}
	if rest >= 0 {
		s.gauge(freshDesc, rest, other)
	}
}

// into returns the entry of a name, and makes it if there is none.
func into[T any](all map[string]*T, name string) *T {
	if all[name] == nil {
		all[name] = new(T)
	}
	return all[name]
}

// fold leaves the first names as they are, by name, and adds the others together under "other".
func fold[T any](all map[string]*T, most int, add func(*T, *T)) map[string]*T {
	if most < 0 || len(all) <= most {
		return all
	}
	out := map[string]*T{}
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i < most && name != other {
			out[name] = all[name]
		} else {
			add(into(out, other), all[name])
		}
	}
	return out
}
