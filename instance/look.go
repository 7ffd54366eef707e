package instance

import (
	"context"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/internal/store"
)

// The waits of a monitor before it suspects a leader; see look.lua. Each of the first three doubles for each time that the
// leader was suspected wrongly in the last ten minutes, up to a lease.
const (
	lookAlone = 40 * time.Millisecond  // how long no client listens to its channel: its process died
	lookOwing = 700 * time.Millisecond // how long it is silent, and has owed a look at due tasks: its process is frozen

	lookTrusts = time.Second            // how long the monitor must have listened itself, so that it may judge by listeners
	lookLate   = 300 * time.Millisecond // a monitor that is later has to begin anew, and may lose its place
	lookAfter  = 30 * time.Millisecond  // how long after a due time it looks
	lookApart  = 100 * time.Millisecond // the least time between two looks while nothing is suspicious
	lookBusy   = 200 * time.Millisecond // the time between two looks at a leader that is busy
)

// lookSilent is how long a leader that does not watch for due tasks may be silent: two heartbeats and a half.
func lookSilent(lease time.Duration) time.Duration { return lease / 2 }

// Seen is the state of the leader that a monitor has seen. The zero value is for the first look.
type Seen struct {
	Signs string    // the last signs of life: heartbeats, cycles, pushes
	Since time.Time // since when they are the same
	Alone time.Time // since when no client listens to the leader's channel; zero: a client listens, or the silence proves nothing
}

// Look is the view and the further results of [Registry.Look].
type Look struct {
	View
	Suspected bool // the leader was suspected by this look: another instance leads
	Seen      Seen // for the next look
	Listeners int  // how many listen to the leader's channel; -1: Redis does not tell
	Own       int  // the same for the caller's channel
	Wrong     int  // how often the leader was suspected wrongly lately

	// Monitor: the caller is the monitor. Next is when it looks next, by the clock of Redis; zero: when a heartbeat or a
	// message says so.
	Monitor bool
	Next    time.Time
}

// Look looks whether the leader lives, if the caller is the monitor: a heartbeat says whether it is, see [Beat.Monitor]. If
// the leader has been silent for too long, it is suspected, and another instance leads when Look returns. The tasks that it
// runs stay its own until its lease ends. If it lives after all, it leads again with its next heartbeat.
//
// LeaderGen is the generation that leads, as far as the caller knows. Listened is how long the caller has listened to its own
// channel without a break.
func (r *Registry) Look(ctx context.Context, id string, gen, leaderGen int64, lease time.Duration, seen Seen, listened time.Duration) (Look, error) {
	values, err := r.run(ctx, lookScript, r.first(r.keys.Running(leaderGen)), id, gen, leaderGen, lease.Milliseconds(),
		seen.Signs, store.Ms(seen.Since), store.Ms(seen.Alone), listened.Milliseconds(),
		lookAlone.Milliseconds(), lookOwing.Milliseconds(), lookSilent(lease).Milliseconds(), lookTrusts.Milliseconds(),
		lookLate.Milliseconds(), lookAfter.Milliseconds(), lookApart.Milliseconds(), lookBusy.Milliseconds())
	if err != nil {
		return Look{}, fmt.Errorf("look at the leader: %w", err)
	}
	l := Look{
		View: viewOf(values), Suspected: values.Int(viewed) == 1,
		Seen: Seen{
			Signs: values.Text(viewed + 1), Since: store.FromMs(values.Int(viewed + 2)), Alone: store.FromMs(values.Int(viewed + 3)),
		},
		Listeners: int(values.Int(viewed + 4)), Own: int(values.Int(viewed + 5)), Wrong: int(values.Int(viewed + 6)),
		Monitor: values.Int(viewed+7) != 0,
	}
	if next := values.Int(viewed + 7); next > 0 {
		l.Next = store.FromMs(next)
	}
	return l, nil
}
