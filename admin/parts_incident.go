package admin

import (
	"maps"
	"slices"
)

// beside reports whether an incident of another partition is of the same time, and ended as this one did: a node that is away, or an instance
// that crashed, shows in several.
func (n *incident) beside(other *incident) bool {
	return n.leaderless == other.leaderless && !n.from.After(other.to.Add(incidentGap)) && !other.from.After(n.to.Add(incidentGap))
}

// with is the incident of both partitions: an instance that is lost, silent or back in one of them is so in the whole.
func (n *incident) with(other *incident) *incident {
	j := *n
	j.lost, j.silent, j.back = slices.Concat(n.lost, other.lost), slices.Concat(n.silent, other.silent), maps.Clone(n.back)
	maps.Copy(j.back, other.back)
	j.from, j.to, j.since = earlier(n.from, other.from), later(n.to, other.to), later(n.since, other.since)
	j.paused = max(n.paused, other.paused)
	if n.leads != other.leads {
		j.leads = who{}
	}
	if j.leaderless {
		j.stopped = earlier(n.stopped, other.stopped)
	}
	j.missed = missedSlots{n.missed.n + other.missed.n, n.missed.least || other.missed.least}
	return &j
}
