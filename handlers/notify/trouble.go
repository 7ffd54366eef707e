package notify

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// Trouble is something that is not well now, as the status of the namespace says. The notifier computes no such state itself.
type Trouble struct {
	// Topic is Hung, Unhandled, Lost or Paused.
	Topic Topic
	// Schedule or Type names what it is about. Both are empty if it is about the namespace.
	Schedule, Type string
	// Since is when it began; zero if that is not known.
	Since time.Time
	// Text is what is wrong, in words.
	Text string
}

// askEvery is how often the notifier asks what is not well, for windows that are shorter.
const askEvery = 3 * time.Second

// askFor bounds the answer. Without one, nothing begins and nothing ends.
const askFor = 10 * time.Second

// pausedEvery is how often a schedule that stays paused is told of.
const pausedEvery = 24 * time.Hour

// lostFor is how long it is known that a loss was told of: longer than a status tells of it.
const lostFor = 48 * time.Hour

// ofStatus are the topics that a status knows.
var ofStatus = []Topic{Hung, Unhandled, Lost, Paused}

// about names the trouble: as long as it lasts, it has one name.
func (x *Trouble) about() about {
	a := about{what: string(x.Topic)}
	switch {
	case x.Topic == Lost: // each loss is one
		a.name = strconv.FormatInt(x.Since.UnixMilli(), 10)
	case x.Schedule != "":
		a.name = aSchedule + " " + x.Schedule
	case x.Type != "":
		a.name = aType + " " + x.Type
	}
	return a
}

// ask asks what is not well, at the end of a window. A failure to ask holds up no other message.
func (n *Notifier) ask(ctx context.Context, now time.Time) {
	k := n.known
	wanted := slices.ContainsFunc(k.rounds, func(r *round) bool { return slices.ContainsFunc(ofStatus, r.any) })
	if n.cfg.Troubles == nil || !wanted || now.Sub(k.asked) < askEvery {
		return
	}
	bound, done := context.WithTimeout(ctx, askFor)
	defer done()
	troubles, err := n.cfg.Troubles(bound)
	if err == nil {
		k.troubles, k.told, k.asked = troubles, true, now
		return
	}
	k.told = false
	if ctx.Err() == nil {
		n.cfg.Log.Warn().Err(err).Msg("cannot ask what is not well: targets do not hear of it")
	}
}

// judgeTroubles tells of each trouble once as long as it lasts, and of a schedule that stays paused every 24 hours. A trouble that ends
// for less than a window goes on.
func (r *round) judgeTroubles(end time.Time, list []Trouble) {
	lasts := map[about]bool{}
	for i := range list {
		x := &list[i]
		a := x.about()
		if lasts[a] || !r.any(x.Topic) {
			continue
		}
		s := r.subject(a)
		lasts[a] = true
		if s.Told == 0 || x.Topic == Paused && end.UnixMilli()-s.Told >= pausedEvery.Milliseconds() {
			at := x.Since
			if at.IsZero() {
				at = end
			}
			r.add(x.Topic, 1, Notice{At: at, Schedule: x.Schedule, Type: x.Type, Text: x.Text})
			s.Told, s.At, s.touched = end.UnixMilli(), end.UnixMilli(), true
		}
		if s.Well != 0 {
			s.Well, s.touched = 0, true
		}
	}
	for _, a := range r.sorted() {
		s := r.subjects[a]
		switch {
		case !slices.Contains(ofStatus, Topic(a.what)) || lasts[a]:
		case a.what == string(Lost):
			if end.UnixMilli()-s.Told > lostFor.Milliseconds() {
				r.forget(a)
			}
		case s.well(end, r.window):
			r.forget(a)
		default:
			s.succeed(end)
		}
	}
}
