package producer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// Follower follows the schedules of a partition, from any process, whichever instance leads: which there are, how stale each is,
// and what becomes of their slots. It reads what has changed since it last read, so that it can be asked often. One goroutine
// may use it at a time.
type Follower struct {
	q    *queue.Queue
	made time.Time // by the local clock: slots are counted from then on

	version int64 // of the schedules that are known
	whole   bool  // all of them are
	known   map[string]*followed
	names   []string // of known, sorted; nil: to be sorted anew

	after  string // the place in the history up to which all was read; "" before the first time
	met    bool   // that is an entry
	gaps   int64
	before string // the place down to which successes were looked for
	looked int    // how many entries were looked at for that; mostLatest: it is over
	oldest time.Time
	fates  map[task.Outcome]int64
}

// followed is one schedule.
type followed struct {
	*entry
	success time.Time     // when it was last done, by the clock of Redis; zero if that is not known
	gap     time.Duration // the longer of the two gaps between slots around until
	until   time.Time     // gap holds up to then
}

// Following is what a [Follower] found.
type Following struct {
	Active, Paused int64 // schedules; an active one may have no slot to come
	// Stale has each schedule with slots to come, by name. It leaves out paused schedules, those with max_runs, and
	// those of whose successes nothing is known yet.
	Stale []Stale
	// Fates counts the slots since the follower was made, by what became of them at last.
	Fates map[task.Outcome]int64
	// Gaps is how often Redis had dropped entries of the history before the follower read them. Fates lack what they said.
	Gaps int64
}

// Stale says how long ago a schedule last succeeded.
type Stale struct {
	Schedule string
	// Ratio is the time since the last success, divided by the time between two slots: up to about 1 is fresh. The time counts
	// from the schedule's last change if that came later, and from the oldest known part of the history if nothing older is
	// known. So a schedule that was made or resumed just now is fresh.
	Ratio float64
}

// Fates are the words that [Following] counts slots by. The other words are of runs after which the slot runs again.
func Fates() []task.Outcome {
	return []task.Outcome{
		history.Done, history.Dead, history.Cancelled, history.Skipped, history.Missed, history.Paused, history.Changed,
		history.Deleted, history.Retired, history.Forgotten,
	}
}

// NewFollower returns a follower of a namespace that counts slots from now on. It does not talk to Redis yet.
func NewFollower(rdb redis.UniversalClient, namespace string) (*Follower, error) {
	q, err := queue.Of(rdb, namespace)
	if err != nil {
		return nil, err
	}
	f := &Follower{q: q, made: time.Now(), known: map[string]*followed{}, fates: map[task.Outcome]int64{}}
	for _, word := range Fates() {
		f.fates[word] = 0
	}
	return f, nil
}

// mostNotes bounds how many notes of the history one reading takes in. The next one goes on from there. firstFollowed is how many entries
// its first page has: then their size decides.
const (
	mostNotes     = 50_000
	firstFollowed = 50
)

// Follow reads on. The first time it reads all schedules, and counts no slot: so a counter that is made of the fates is seen at
// zero before it rises. Then it takes 6 commands, besides those for what has changed.
func (f *Follower) Follow(ctx context.Context) (Following, error) {
	now, err := f.q.Now(ctx)
	if err != nil {
		return Following{}, err
	}
	if err := f.refresh(ctx); err != nil {
		return Following{}, err
	}
	if f.after == "" {
		from := now.Add(-time.Since(f.made))
		f.after = fmt.Sprintf("%d-0", from.UnixMilli())
		f.before, f.oldest = f.after, from
	} else if gap, err := f.readOn(ctx); err != nil {
		return Following{}, err
	} else if gap {
		f.gaps++
	}
	if err := f.lookBack(ctx); err != nil {
		return Following{}, err
	}
	return f.found(now), nil
}

// refresh takes in the schedules that have changed.
func (f *Follower) refresh(ctx context.Context) error {
	if !f.whole {
		return f.readAll(ctx)
	}
	names, version, err := f.q.ChangedSince(ctx, f.version)
	if err != nil || len(names) == 0 {
		return err
	}
	if slices.Contains(names, queue.Mended) {
		return f.readAll(ctx)
	}
	list, err := f.q.SchedulesNamed(ctx, names)
	if err != nil {
		return err
	}
	for _, st := range list {
		f.put(st)
	}
	f.version = version
	return nil
}

func (f *Follower) readAll(ctx context.Context) error {
	old := f.known
	f.known, f.whole = make(map[string]*followed, len(old)), false
	version, err := f.q.Schedules(ctx, func(part []queue.Stored) error {
		for _, st := range part {
			f.put(st)
			if was, is := old[st.Name], f.known[st.Name]; was != nil && is != nil {
				is.success = was.success
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.version, f.whole = version, true
	return nil
}

// put takes in one schedule. It does not follow a schedule that this release cannot read, or that is gone.
func (f *Follower) put(st queue.Stored) {
	was := f.known[st.Name]
	delete(f.known, st.Name)
	f.names = nil
	e, err := newEntry(st)
	if err != nil || e == nil {
		return
	}
	e.s.Payload, e.raw = nil, "" // nothing here needs them
	is := &followed{entry: e}
	if was != nil {
		is.success = was.success
	}
	f.known[st.Name] = is
}

// readOn takes in what was noted since the last time. It reports whether Redis had dropped some of that.
func (f *Follower) readOn(ctx context.Context) (gap bool, err error) {
	for page, notes := firstFollowed, 0; ; {
		t, err := f.q.HistoryTail(ctx, f.after, page)
		if err != nil {
			return gap, err
		}
		gap = gap || f.met && !t.There && len(t.Items) > 0
		for _, e := range t.Items {
			for i := range e.Notes {
				f.count(&e.Notes[i])
				f.succeed(&e.Notes[i])
			}
			f.after, f.met = e.ID, true
			notes += len(e.Notes)
		}
		if !t.More || notes >= mostNotes {
			return gap, nil
		}
		page = t.Fits
	}
}

// count counts the slots of a note by their fate.
func (f *Follower) count(n *history.Note) {
	if _, fate := f.fates[n.Word]; !fate || n.Schedule == "" {
		return
	}
	f.fates[n.Word] += history.SlotsOf(n)
}

// succeed notes a success, of a slot or of a trigger.
func (f *Follower) succeed(n *history.Note) {
	if n.Word != history.Done {
		return
	}
	if s := f.known[n.Maker]; s != nil && n.At.After(s.success) {
		s.success = n.At
	}
}

// lookPage is how many entries [Follower.lookBack] looks at: as many as one command reads.
const lookPage = 500

// lookBack looks for the last successes from before the follower was made, a page of the history each time.
func (f *Follower) lookBack(ctx context.Context) error {
	if f.looked >= mostLatest || f.knowsAll() {
		return nil
	}
	page := 0
	err := f.q.HistoryBefore(ctx, f.before, func(e history.Entry) bool {
		for i := range e.Notes {
			f.succeed(&e.Notes[i])
		}
		f.before, f.oldest = e.ID, e.At
		page++
		return page < lookPage
	})
	if err != nil {
		return err
	}
	f.looked += page
	if page < lookPage { // that was all
		f.looked = mostLatest
	}
	return nil
}

// knowsAll reports whether a success of each schedule is known.
func (f *Follower) knowsAll() bool {
	for _, s := range f.known {
		if s.success.IsZero() {
			return false
		}
	}
	return true
}

func (f *Follower) found(now time.Time) Following {
	if f.names == nil {
		f.names = slices.Sorted(maps.Keys(f.known))
	}
	out := Following{Fates: maps.Clone(f.fates), Gaps: f.gaps}
	for _, name := range f.names {
		s := f.known[name]
		if s.last.Paused {
			out.Paused++
			continue
		}
		out.Active++
		if ratio, ok := s.stale(now, f.looked >= mostLatest, f.oldest); ok {
			out.Stale = append(out.Stale, Stale{Schedule: name, Ratio: ratio})
		}
	}
	return out
}

// stale returns how stale the schedule is. Oldest is how far back all is known, once that is known.
func (s *followed) stale(now time.Time, looked bool, oldest time.Time) (ratio float64, ok bool) {
	if s.s.MaxRuns > 0 || s.success.IsZero() && !looked || !s.measure(now) {
		return 0, false
	}
	since := maxTime(s.success, maxTime(s.last.Anchor, changedAt(s.last.Rev, now)))
	if s.success.IsZero() {
		since = maxTime(since, oldest)
	}
	return max(now.Sub(since).Seconds(), 0) / s.gap.Seconds(), true
}

// measure finds the gap between slots, and reports whether a slot is to come.
func (s *followed) measure(now time.Time) bool {
	if s.gap == 0 || !now.Before(s.until) {
		s.gap, s.until = s.grid.Gap(now), s.grid.Next(now)
	}
	return s.gap > 0
}
