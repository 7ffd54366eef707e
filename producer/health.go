package producer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// Health says how the runs and slots of one schedule went, as far as the history was read. The leader keeps it in Redis, beside the
// schedule, so every process knows the same at once.
type Health struct {
	Success time.Time // when a run last ended well; zero if none did
	Ended   time.Time // when a run was last done or dead
	Outcome task.Outcome
	// Dead is how many runs ended dead since Success, and Failed how many attempts failed since Ended.
	Dead, Failed int64
	// Troubled is when the first attempt failed since Success, or the moment of the first slot that was missed.
	Troubled time.Time
	// Skipped is how many slots were skipped because a run before them went on, since a run ended or was lost or handed back; Missed is how
	// many were missed since Success.
	Skipped, Missed int64
	// Noted is up to when it is known what became of slots: when anything was last noted, or a slot that was cancelled before it came.
	Noted time.Time
	// Took is how long a run usually takes: a moving average.
	Took time.Duration
	// Task and Error are of the last attempt that failed.
	Task, Error string
}

// errEnough ends a reading of the history.
var errEnough = errors.New("enough was read")

// longestHealthError bounds the error that is kept with a schedule.
const longestHealthError = 200

// add takes in a note of the schedule, and reports whether it tells anything.
func (h *Health) add(n *history.Note) bool {
	switch n.Word {
	case history.Done:
		took := n.Took
		if h.Took > 0 {
			took = (3*h.Took + n.Took) / 4
		}
		*h = Health{Success: n.At, Ended: n.At, Outcome: n.Word, Took: took, Noted: h.Noted}
	case history.Dead:
		h.trouble(n.At)
		h.Dead++
		h.Ended, h.Outcome, h.Failed, h.Skipped = n.At, n.Word, 0, 0
		h.Task, h.Error = n.TaskID, wording.Cut(n.Error, longestHealthError)
	case history.Returned:
		h.Skipped = 0
	case history.Cancelled: // what failed before still does
		h.Skipped = 0
		h.Noted = maxTime(h.Noted, n.Slot) // it may have been pushed ahead: when it comes, nothing waits
	case history.Failed, history.Lost:
		h.trouble(n.At)
		h.Failed++
		if n.Word == history.Lost {
			h.Skipped = 0
		}
		h.Task, h.Error = n.TaskID, wording.Cut(n.Error, longestHealthError)
	case history.Skipped:
		if n.Why != history.ByOverlap {
			return false // too many wait, or another task has the ID: no run goes on
		}
		h.Skipped += history.SlotsOf(n)
	case history.Missed:
		h.trouble(maxTime(firstOf(n), h.Success)) // it is noted when a leader comes
		h.Missed += history.SlotsOf(n)
	default:
		return false
	}
	h.Noted = maxTime(h.Noted, n.At)
	return true
}

// firstOf is the moment of the first slot that a note is of, or when it was noted.
func firstOf(n *history.Note) time.Time {
	switch {
	case !n.Slot.IsZero():
		return n.Slot
	case !n.From.IsZero():
		return n.From
	}
	return n.At
}

func (h *Health) trouble(at time.Time) {
	if h.Troubled.IsZero() {
		h.Troubled = at
	}
}

func (h *Health) encode() string {
	ms := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return store.Ms(t)
	}
	return fmt.Sprintf("%d %d %d %d %d %d %d %d %d %s\t%s\t%s", ms(h.Success), ms(h.Ended), ms(h.Noted), ms(h.Troubled), h.Dead, h.Failed, h.Skipped,
		h.Missed, h.Took.Milliseconds(), h.Outcome, h.Task, h.Error)
}

// parseHealth reads what encode wrote. A text that it cannot read counts as nothing known.
func parseHealth(text string) (h Health) {
	parts := strings.SplitN(text, "\t", 3)
	head := strings.Split(parts[0], " ")
	if len(parts) != 3 || len(head) != 10 {
		return h
	}
	var n [9]int64
	for i := range n {
		v, err := strconv.ParseInt(head[i], 10, 64)
		if err != nil || v < 0 {
			return Health{}
		}
		n[i] = v
	}
	at := func(ms int64) time.Time {
		if ms == 0 {
			return time.Time{}
		}
		return store.FromMs(store.ClampMs(float64(ms)))
	}
	return Health{
		Success: at(n[0]), Ended: at(n[1]), Noted: at(n[2]), Troubled: at(n[3]), Dead: n[4], Failed: n[5], Skipped: n[6], Missed: n[7],
		Took: time.Duration(min(n[8], 1<<40)) * time.Millisecond, Outcome: task.Outcome(head[9]), Task: parts[1], Error: parts[2],
	}
}

// healthPlace is the field of the hash that says up to which entry of the history it was read. No schedule has that name, nor those of
// [trendField].
const healthPlace = "@"

// healthStep is how often the leader notes the health of schedules. healthBehind is how many notes of the history a reader takes in besides
// what the leader has noted.
const (
	healthStep   = 2 * time.Second
	healthAgain  = 10 * time.Second
	healthBehind = 20_000
)

// Healths returns, by name, how the runs of schedules went, as of now: what the leader has noted, and what was noted in the history
// since. A schedule of which nothing is known is left out. UpTo is zero, or the moment up to which it knows, if no leader has noted
// anything for so long that there is too much to read.
func (s *Schedules) Healths(ctx context.Context, names []string) (list map[string]*Health, upTo time.Time, err error) {
	texts, err := s.q.Health(ctx, append([]string{healthPlace}, names...))
	if err != nil {
		return nil, upTo, err
	}
	list = make(map[string]*Health, len(names))
	wanted := make(map[string]bool, len(names))
	for i, name := range names {
		wanted[name] = true
		if texts[i+1] != "" {
			h := parseHealth(texts[i+1])
			list[name] = &h
		}
	}
	notes := 0
	err = s.q.HistoryAfter(ctx, afterPlace(texts[0]), func(e history.Entry) error {
		if notes >= healthBehind {
			return errEnough
		}
		for i := range e.Notes {
			if name := subjectOf(&e.Notes[i]); wanted[name] {
				addTo(list, name, &e.Notes[i])
			}
		}
		notes, upTo = notes+len(e.Notes), e.At
		return nil
	})
	if errors.Is(err, errEnough) {
		return list, upTo, nil
	}
	return list, time.Time{}, err
}

// subjectOf returns the schedule that a note is of: also that of a trigger or a backfill.
func subjectOf(n *history.Note) string {
	if n.Maker != "" {
		return n.Maker
	}
	return n.Schedule
}

func addTo(list map[string]*Health, name string, n *history.Note) bool {
	h := list[name]
	if h == nil {
		h = &Health{}
		list[name] = h
	}
	return h.add(n)
}

func afterPlace(text string) string {
	if text == "" {
		return "0-0"
	}
	return text
}

// Listener hears on the leader how the runs of some schedules ended.
type Listener interface {
	// Listens reports whether it wants to hear of a schedule.
	Listens(schedule string) bool
	// Hear is told of runs that are done or dead, every two seconds or so, also if there are none. A run that it has heard of may come once
	// more if the leader is lost, or if Hear returns an error.
	Hear(ctx context.Context, term task.Term, runs []Run) error
}

// KeepHealth notes the health of schedules in Redis in every term of the session, and tells the listener. It returns nil when the
// session drains or ends. No failure ends it: runs that were not noted are in the history, and are noted next time. Runs that Redis drops
// from the history before that are never noted.
func (s *Schedules) KeepHealth(session interface {
	Context() context.Context
	Draining() <-chan struct{}
	Term() (t task.Term, began time.Time, leads bool)
}, l Listener) error {
	var place *string // up to where the history is noted; nil: to be read
	var t trends
	for {
		wait := healthStep
		if term, _, leads := session.Term(); !leads {
			place, t = nil, trends{}
		} else if next, more, err := s.noteHealth(session.Context(), term, place, &t, l); err != nil {
			place, wait = nil, healthAgain
		} else if place = &next; more {
			wait = 0
		}
		select {
		case <-time.After(wait):
		case <-session.Draining():
			return nil
		case <-session.Context().Done():
			return nil
		}
	}
}

// noteHealth takes in a part of the history behind a place, tells the listener, and notes it, with the trend of each minute. It returns the next place, and whether there is more.
func (s *Schedules) noteHealth(ctx context.Context, term task.Term, place *string, t *trends, l Listener) (next string, more bool, err error) {
	if place == nil {
		noted, err := s.q.Health(ctx, []string{healthPlace})
		if err != nil {
			return "", false, err
		}
		place = &noted[0]
	}
	var read []history.Entry
	notes := 0
	err = s.q.HistoryAfter(ctx, afterPlace(*place), func(e history.Entry) error {
		read = append(read, e)
		if notes += len(e.Notes); notes >= queue.MaxBatch {
			return errEnough
		}
		return nil
	})
	if more = errors.Is(err, errEnough); err != nil && !more {
		return *place, false, err
	}
	if err := l.Hear(ctx, term, ended(read, l)); err != nil { // before it is noted, or a lost leader's would be lost
		return *place, false, err
	}
	set, err := t.take(ctx, s, read)
	if err != nil || len(set) == 0 {
		return *place, false, err
	}
	next = *place
	if len(read) > 0 {
		next = read[len(read)-1].ID
	}
	names := map[string]bool{}
	for _, e := range read {
		for i := range e.Notes {
			names[subjectOf(&e.Notes[i])] = true
		}
	}
	delete(names, "")
	list, err := s.noted(ctx, names)
	if err != nil {
		return "", false, err
	}
	set[healthPlace] = next
	c := queue.NoticeChange{Name: healthPlace, Was: *place, Set: set}
	for _, e := range read {
		for i := range e.Notes {
			if name := subjectOf(&e.Notes[i]); name != "" && addTo(list, name, &e.Notes[i]) {
				c.Set[name] = list[name].encode()
			}
		}
	}
	return next, more, s.q.NoteHealth(ctx, term, c)
}

// ended are the runs that a listener hears of.
func ended(read []history.Entry, l Listener) (runs []Run) {
	for _, e := range read {
		for i := range e.Notes {
			n := &e.Notes[i]
			if (n.Word == history.Done || n.Word == history.Dead) && n.Maker != "" && l.Listens(n.Maker) {
				runs = append(runs, RunOf(n))
			}
		}
	}
	return runs
}

// noted reads what is noted of schedules.
func (s *Schedules) noted(ctx context.Context, names map[string]bool) (map[string]*Health, error) {
	list := map[string]*Health{}
	sorted := slices.Sorted(maps.Keys(names))
	texts, err := s.q.Health(ctx, sorted)
	for i, text := range texts {
		if text != "" {
			h := parseHealth(text)
			list[sorted[i]] = &h
		}
	}
	return list, err
}
