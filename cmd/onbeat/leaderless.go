package main

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/store"
)

// leaderless says since when nobody leads, as " since 15:04:05 (12s)", or "" if somebody does or it is not known. It is
// the end of the leader's lease: that nobody led may have been found out long after it began.
func (c *client) leaderless(ctx context.Context, list []instance.Info, now time.Time) string {
	var since time.Time
	if i := slices.IndexFunc(list, func(i instance.Info) bool { return i.Leader }); i >= 0 {
		if list[i].Lease > 0 {
			return ""
		}
		since = now.Add(list[i].Lease) // nobody has found out yet
	} else {
		events, err := c.Queue().Events(ctx, time.Time{}, 10_000)
		if err != nil {
			return ""
		}
		since = leaderlessIn(events)
	}
	if since.IsZero() || since.After(now) {
		return ""
	}
	return " since " + since.UTC().Format("2006-01-02 15:04:05") + " (" + span(now.Sub(since)) + ")"
}

// leaderlessIn finds in events, the newest last, since when nobody leads: zero if somebody does, or it is too long ago.
func leaderlessIn(events []queue.Event) time.Time {
	for i, e := range slices.Backward(events) {
		switch e.Kind {
		case "leader":
			return time.Time{}
		case "no leader":
			if ms, ok := msOf(e.Fields["since"]); ok {
				return ms
			}
			for _, l := range slices.Backward(events[:i]) { // an earlier release says it of the one that was lost
				if ms, ok := msOf(l.Fields["lease"]); ok && l.Kind == "lost" && l.Fields["instance"] == e.Fields["instance"] {
					return ms
				}
			}
			return e.At
		}
	}
	return time.Time{}
}

func msOf(text string) (time.Time, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return store.FromMs(n), err == nil && n > 0
}
