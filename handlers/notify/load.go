package notify

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/producer"
)

// young is how old a namespace is at most that is new, or came back empty.
const young = time.Minute

// load reads what earlier leaders have noted. For a window that is new, all begins now; in a namespace that is new, or that came back
// empty, the runs and slots since its beginning count too: no leader noted anything of them.
func (n *Notifier) load(ctx context.Context, now time.Time) (*known, error) {
	all, err := n.q.Notices(ctx)
	if err != nil {
		return nil, err
	}
	k := &known{messages: map[string]string{}, page: firstPage}
	rounds := n.rounds()
	for _, window := range slices.Sorted(maps.Keys(rounds)) {
		r := rounds[window]
		r.saved = all[positionName(window)]
		place, ok := parsePosition(r.saved)
		if !ok {
			ends, err := n.q.Ends(ctx)
			if err != nil {
				return nil, err
			}
			place = position{UpTo: now.UnixMilli(), Event: ends.Event, Entry: ends.Entry, Run: ends.Run}
			first, err := n.q.EventTail(ctx, "", 1)
			if err != nil {
				return nil, err
			}
			if len(all) == 0 && len(first.Items) > 0 && now.Sub(first.Items[0].At) < young {
				place.Entry, place.Run = "", ""
			}
		}
		r.place = place
		k.rounds = append(k.rounds, r)
		if r.any(Stale) && k.fresh == nil {
			if k.fresh, err = producer.NewFollower(n.q.Client(), n.q.Namespace()); err != nil {
				return nil, err
			}
		}
	}
	for name, text := range all {
		k.take(name, text, rounds, all, now)
	}
	return k, nil
}

// rounds are those of the targets, by their windows.
func (n *Notifier) rounds() map[time.Duration]*round {
	rounds := map[time.Duration]*round{}
	for i := range n.cfg.Targets {
		t := &n.cfg.Targets[i]
		if rounds[t.Window] == nil {
			rounds[t.Window] = newRound(t.Window)
		}
		rounds[t.Window].targets = append(rounds[t.Window].targets, t)
	}
	return rounds
}

// keptOther is how long what was noted for a window of no target is kept: another release may have targets with it.
const keptOther = 24 * time.Hour

// take takes in one of the texts in Redis.
func (k *known) take(name, text string, rounds map[time.Duration]*round, all map[string]string, now time.Time) {
	kind, rest, _ := strings.Cut(name, " ")
	if kind == "m" {
		k.messages[rest] = text
		return
	}
	number, rest, _ := strings.Cut(rest, " ")
	ms, err := strconv.ParseInt(number, 10, 64)
	r := rounds[time.Duration(ms)*time.Millisecond]
	switch {
	case err != nil:
	case r == nil:
		if p, ok := parsePosition(all["w "+number]); !ok || now.UnixMilli()-p.UpTo > keptOther.Milliseconds() {
			k.old = append(k.old, name)
		}
	case kind == "s":
		if what, subject, ok := strings.Cut(rest, " "); ok { // each: the round that noted them had the bound
			r.subjects[about{what, subject}] = parseSubject(text)
		}
	}
}
