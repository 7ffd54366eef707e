package telemetry

import (
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/producer"
)

// part is what metrics know of one partition.
type part struct {
	m        *Metrics
	q        *queue.Queue
	reg      *instance.Registry
	follower *producer.Follower

	leads  atomic.Bool
	term   atomic.Int64 // the last epoch that was heard of
	heard  moment       // when Redis last answered a heartbeat
	pushed moment       // when this leader last pushed slots
	behind atomic.Int64 // how many entries wait to be archived; negative: this process does not archive
}

// Bind begins to read a partition. A dispatcher calls it for each.
func (m *Metrics) Bind(rdb redis.UniversalClient, namespace string) (onbeat.PartitionObserver, error) {
	p := &part{m: m}
	p.behind.Store(-1)
	var err error
	if p.q, err = queue.Of(rdb, namespace); err != nil {
		return nil, err
	}
	if p.reg, err = instance.NewRegistry(rdb, namespace); err != nil {
		return nil, err
	}
	if p.follower, err = producer.NewFollower(rdb, namespace); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts = append(m.parts, p)
	return p, nil
}

// bound returns the partitions.
func (m *Metrics) bound() []*part {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.parts
}

// Pushed notes when this leader last pushed slots.
func (p *part) Pushed(int) { p.pushed.now() }

// Heard notes a heartbeat, and counts another term.
func (p *part) Heard(v instance.View) {
	p.heard.now()
	if v.Leader == "" {
		return
	}
	if before := p.term.Swap(v.Epoch); before != 0 && before != v.Epoch {
		p.m.changes.Inc()
	}
}

// Leads notes whether this instance leads.
func (p *part) Leads(epoch int64) {
	p.pushed.never()
	p.leads.Store(epoch != 0)
}

// LeaderSuspected counts a leader that this instance found without a sign of life.
func (p *part) LeaderSuspected() { p.m.suspicions.Inc() }

// ArchiveBehind notes how many entries wait to be archived.
func (p *part) ArchiveBehind(entries int64) { p.behind.Store(entries) }

// own is what the partitions say of this process together.
type own struct {
	led               int // how many it leads
	epoch, behind     int64
	heard, pushed     float64 // the oldest, in seconds
	hasHeard, hasPush bool
	archives          bool
}

func ownOf(parts []*part) (o own) {
	for _, p := range parts {
		if p.leads.Load() {
			o.led++
			if age, ok := p.pushed.age(); ok { // a push may return after its term has ended
				o.pushed, o.hasPush = max(o.pushed, age.Seconds()), true
			}
		}
		o.epoch = max(o.epoch, p.term.Load())
		if age, ok := p.heard.age(); ok {
			o.heard, o.hasHeard = max(o.heard, age.Seconds()), true
		}
		if n := p.behind.Load(); n >= 0 {
			o.behind, o.archives = o.behind+n, true
		}
	}
	return o
}

// join adds what was read of another partition. Instances are in all partitions.
func (g *gathered) join(other *gathered) {
	a, b := g.counts, other.counts
	a.Now = b.Now
	a.Running, a.Dead, a.Held, a.Retired = a.Running+b.Running, a.Dead+b.Dead, a.Held+b.Held, a.Retired+b.Retired
	a.Lanes = append(a.Lanes, b.Lanes...)
	for _, x := range other.instances {
		at := -1
		for i := range g.instances {
			if g.instances[i].ID == x.ID {
				at = i
			}
		}
		if at < 0 {
			g.instances = append(g.instances, x)
			continue
		}
		had := &g.instances[at]
		had.Leader = had.Leader || x.Leader
		if x.State != "ready" {
			had.State = x.State
		}
	}
	f, o := g.following, other.following
	f.Active, f.Paused, f.Gaps = f.Active+o.Active, f.Paused+o.Paused, f.Gaps+o.Gaps
	f.Stale = append(f.Stale, o.Stale...)
	for word, n := range o.Fates {
		f.Fates[word] += n
	}
}
