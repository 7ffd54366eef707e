package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/wording"
)

// Incident is the kind of trouble that is over, or that other instances have made good: news, and no fault now.
const Incident = "incident"

const (
	incidentLasts  = 15 * time.Minute // it is shown for
	incidentGap    = 30 * time.Second // events closer than that are of one incident
	incidentNames  = 3                // instances of a kind that are named
	incidentsKnown = 64               // incidents whose missed slots are remembered
	incidentReads  = 5000             // entries of the history that are read for one
)

// who is an instance in an event, by the name that people know.
type who struct{ id, host, release string }

func whoOf(e *queue.Event) who {
	return who{e.Fields["instance"], e.Fields["host"], e.Fields["release"]}
}

// String is the host, the last letters of the ID and the release: IDs that onbeat makes begin alike.
func (w who) String() string {
	name := w.id
	if uuid.Validate(w.id) == nil {
		name = strings.TrimSpace(w.host + " …" + w.id[len(w.id)-6:])
	}
	if w.release != "" {
		name += " (" + w.release + ")"
	}
	return name
}

// incident is what happened to instances within a short time, as events tell it.
type incident struct {
	first        string    // the ID of its first event
	began        time.Time // when that was noted; the cause is from before
	from, to     time.Time
	lost, silent []who
	back         map[string]bool // the lost ones that have joined again
	leaderless   bool            // no instance leads at the end of it
	leads        who             // the last that began to lead
	since        time.Time
	led          time.Time            // when an instance last began to lead, also before the incident
	seen         map[string]time.Time // of the lost that have not led since, when Redis last heard of them
	stopped      time.Time            // since when no leader shows a sign of life, if none has followed
	paused       time.Duration        // in sum
	missed       missedSlots
}

// missedSlots are the slots that were missed in an incident.
type missedSlots struct {
	n     int64
	least bool // there may be more
}

func (m missedSlots) String() string {
	slots := wording.Count(m.n, "slot was", "slots were") + " missed"
	switch {
	case m.least:
		return "at least " + slots
	case m.n == 0:
		return "no slot was missed"
	}
	return slots
}

// incidentsOf groups events, the oldest first.
func incidentsOf(events []queue.Event) []*incident {
	var list []*incident
	var led time.Time
	for i := range events {
		e := &events[i]
		begins := slices.Contains([]string{"lost", "suspected", "no leader"}, e.Kind)
		if !begins && !slices.Contains([]string{"leader", "joined", "suspected wrongly"}, e.Kind) {
			continue
		}
		var n *incident
		if len(list) > 0 {
			n = list[len(list)-1]
		}
		if goes := n != nil && n.goesOn(e); !goes && begins {
			n = &incident{first: e.ID, began: e.At, from: e.At, led: led, back: map[string]bool{}, seen: map[string]time.Time{}}
			list = append(list, n)
		} else if !goes {
			n = nil
		}
		if n != nil {
			n.take(e)
		}
		if e.Kind == "leader" {
			led = e.At
		}
	}
	return list
}

// goesOn reports whether an event is of the incident: it came soon after the one before, ends a time with no leader, or is the end of one that
// had been suspected and had a long lease.
func (n *incident) goesOn(e *queue.Event) bool {
	late := e.Kind == "lost" && slices.ContainsFunc(n.silent, func(w who) bool { return w.id == e.Fields["instance"] })
	return n.leaderless || late || e.At.Sub(n.to) <= incidentGap
}

func (n *incident) take(e *queue.Event) {
	w := whoOf(e)
	switch e.Kind {
	case "lost":
		n.lost = append(n.lost, w)
		for _, field := range []string{"seen", "lease"} {
			if at, ok := msOf(e.Fields[field]); ok && n.seen[w.id].IsZero() {
				n.seen[w.id] = at
			}
		}
	case "suspected":
		n.silent = append(n.silent, w)
		since := e.At
		if ms, ok := msOf(e.Fields["ms"]); ok {
			since = e.At.Add(-time.Duration(ms.UnixMilli()) * time.Millisecond)
		}
		n.stop(since)
	case "suspected wrongly":
		n.silent = slices.DeleteFunc(n.silent, func(s who) bool { return s.id == w.id })
		n.silent = append(n.silent, w)
	case "no leader":
		n.leaderless = true
		since := e.At
		if at, ok := msOf(e.Fields["since"]); ok {
			since = at
		}
		n.stop(earlier(n.seen[w.id], since))
	case "leader":
		if before := e.Fields["before"]; before != "" && slices.ContainsFunc(n.lost, func(l who) bool { return l.id == before }) {
			n.stop(earlier(n.seen[before], e.At))
		}
		n.leads, n.since, n.led, n.leaderless = w, e.At, e.At, false
		delete(n.seen, w.id)
		if !n.stopped.IsZero() {
			n.paused += e.At.Sub(n.stopped)
			n.stopped = time.Time{}
		}
	case "joined": // a new instance does not make the incident longer
		if slices.ContainsFunc(n.lost, func(l who) bool { return l.id == w.id }) {
			n.back[w.id] = true
			n.to = e.At
		}
		return
	}
	n.to = e.At
}

// stop notes since when no leader shows a sign of life. The beginning of a term is a sign too: the time before it is counted already, here
// or in an earlier incident.
func (n *incident) stop(at time.Time) {
	at = later(at, n.led)
	n.from = earlier(n.from, at)
	if n.stopped.IsZero() {
		n.stopped = at
	}
}

// earlier is the earlier one of two moments, of which the first may not be known.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// trouble is its line.
func (n *incident) trouble() Trouble {
	return Trouble{
		Warning: true, Kind: Incident, Since: n.from, Until: n.to, Text: n.text(), incident: n,
		Show: "onbeat events --since " + n.from.UTC().Format(time.RFC3339),
	}
}

// text says what happened, and what came of it.
func (n *incident) text() string {
	var parts []string
	var crashed, back, silent []who
	for _, w := range n.lost {
		if n.back[w.id] {
			back = append(back, w)
		} else {
			crashed = append(crashed, w)
		}
	}
	for _, w := range n.silent {
		if !slices.ContainsFunc(n.lost, func(l who) bool { return l.id == w.id }) {
			silent = append(silent, w)
		}
	}
	for _, x := range []struct {
		list []who
		did  string
	}{{crashed, "crashed or was cut off"}, {back, "was cut off from Redis and is back"}, {silent, "led and showed no sign of life"}} {
		if len(x.list) > 0 {
			parts = append(parts, named(x.list)+" "+x.did)
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "no instance was left to lead")
	}
	switch {
	case n.leaderless:
		parts = append(parts, "no instance leads since "+n.stopped.UTC().Format(time.RFC3339))
	case n.leads.id != "":
		parts = append(parts, fmt.Sprintf("%s leads since %s", n.leads, n.since.UTC().Format(time.RFC3339)))
	case !n.since.IsZero(): // several lead, each some partitions
		parts = append(parts, "led again since "+n.since.UTC().Format(time.RFC3339))
	}
	if n.paused > 0 {
		parts = append(parts, "the beat paused for up to "+wording.Span(n.paused))
	}
	return strings.Join(append(parts, n.missed.String()), "; ")
}

// named names some instances, each once.
func named(list []who) string {
	slices.SortFunc(list, func(a, b who) int { return cmp.Compare(a.id, b.id) })
	list = slices.CompactFunc(list, func(a, b who) bool { return a.id == b.id })
	names := make([]string, 0, incidentNames)
	for _, w := range list[:min(len(list), incidentNames)] {
		names = append(names, w.String())
	}
	text := strings.Join(names, ", ")
	if more := len(list) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(list) > 1 {
		text += ": each"
	}
	return text
}

// incidents remember how many slots were missed in each that is over.
type incidents struct {
	mu     sync.Mutex
	missed map[string]missedSlots
}

// lookAtIncidents tells what happened to instances in the last quarter of an hour.
func (a *activity) lookAtIncidents(ctx context.Context, v *view, events []queue.Event) error {
	for _, n := range incidentsOf(events) {
		if v.now.Sub(n.to) > incidentLasts && !n.leaderless {
			continue
		}
		var err error
		if n.missed, err = a.incidents.missedIn(ctx, a.q, n, v.now); err != nil {
			return err
		}
		if len(n.lost)+len(n.silent) == 0 && !n.leaderless && n.missed == (missedSlots{}) {
			continue // all had left, and one came in time
		}
		v.add(n.trouble())
	}
	return nil
}

var errRead = errors.New("enough is read")

// missedIn says how many slots were missed in an incident. Its leader may note them a moment later. Slots that were noted before its first
// event were missed in the incident before, whose last leader may have led for a moment only.
func (x *incidents) missedIn(ctx context.Context, q *queue.Queue, n *incident, now time.Time) (missedSlots, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if m, ok := x.missed[n.first]; ok {
		return m, nil
	}
	until := n.to.Add(incidentGap)
	var m missedSlots
	read := 0
	err := q.History(ctx, n.began, func(e history.Entry) error {
		if read++; read > incidentReads || e.At.After(until) {
			return errRead
		}
		for i := range e.Notes {
			if e.Notes[i].Word == history.Missed {
				m.n += history.SlotsOf(&e.Notes[i])
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errRead) {
		return missedSlots{}, err
	}
	m.least = read > incidentReads
	if now.After(until) && !n.leaderless {
		if len(x.missed) >= incidentsKnown || x.missed == nil {
			x.missed = map[string]missedSlots{}
		}
		x.missed[n.first] = m
	}
	return m, nil
}

// lookAtReleases tells that no instance of the newest release runs: it crashed, and an older one does its work.
func (a *activity) lookAtReleases(ctx context.Context, v *view) error {
	lead := v.list.Leader()
	if lead == nil {
		return nil
	}
	list, err := a.instances.reg.Releases(ctx)
	if err != nil {
		return err
	}
	newest := instance.Release{Order: lead.Order}
	for _, i := range v.list.Items {
		if i.LeaseLeftMS > 0 {
			newest.Order = max(newest.Order, i.Order)
		}
	}
	for _, r := range list {
		if r.Order > newest.Order {
			newest = r
		}
	}
	if newest.Name == "" || newest.Gone.IsZero() {
		return nil
	}
	v.add(Trouble{
		Warning: true, Kind: Incident, Name: newest.Name, Since: newest.Gone, Show: "onbeat instances",
		Text: "the newest release is not running: its last instance was lost, and " + cmp.Or(lead.Release, "an instance without a release") + " leads",
	})
	return nil
}
