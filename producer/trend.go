package producer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/schedule"
)

// TrendsKept is for how long the trend of each minute is kept.
const TrendsKept = 7 * 24 * time.Hour

// trendSlots is how many minutes there is room for: a newer one takes the place of the one that is a week older.
const trendSlots = int64(TrendsKept / time.Minute)

// backlogEvery is how often the leader looks how much waits.
const backlogEvery = 15 * time.Second

// Trend is what happened in one minute. The leader notes it beside the health of schedules, from the same entries of the history, so each is
// counted once whatever becomes of the leader.
type Trend struct {
	At time.Time // the minute begins here
	// Done, Failed, Dead and Lost count runs of schedules by how they ended; Missed and Skipped count slots that did not run.
	Done, Failed, Dead, Lost, Missed, Skipped int64
	// Began counts the first runs of slots; Lag is how long these waited in all after they were due, and MaxLag the longest of them.
	Began       int64
	Lag, MaxLag time.Duration
	// Took is how long the runs took that ended, and MaxTook the longest of them.
	Took, MaxTook time.Duration
	// Waiting and Running are the most that waited for a worker, and that ran, when the leader looked. Finished is how many tasks had ended
	// well by then, since the namespace was made. Looked reports whether it looked.
	Waiting, Running, Finished int64
	Looked                     bool
}

// add takes in a note.
func (t *Trend) add(n *history.Note, lag time.Duration, began bool) {
	switch n.Word {
	case history.Done:
		t.Done++
	case history.Failed:
		t.Failed++
	case history.Dead:
		t.Dead++
	case history.Lost:
		t.Lost++
	case history.Missed:
		t.Missed += history.SlotsOf(n)
	case history.Skipped:
		t.Skipped += history.SlotsOf(n)
	}
	t.Took, t.MaxTook = t.Took+n.Took, max(t.MaxTook, n.Took)
	if began {
		t.Began++
		t.Lag, t.MaxLag = t.Lag+lag, max(t.MaxLag, lag)
	}
}

// look takes in how much waits, runs and has ended.
func (t *Trend) look(waiting, running, finished int64) {
	t.Waiting, t.Running, t.Finished, t.Looked = max(t.Waiting, waiting), max(t.Running, running), max(t.Finished, finished), true
}

// numbers are the fields of a trend but its time, in the order in which they are written.
func (t *Trend) numbers() []*int64 {
	return []*int64{&t.Done, &t.Failed, &t.Dead, &t.Lost, &t.Missed, &t.Skipped, &t.Began, (*int64)(&t.Lag), (*int64)(&t.MaxLag), (*int64)(&t.Took),
		(*int64)(&t.MaxTook), &t.Waiting, &t.Running, &t.Finished}
}

func (t *Trend) encode() string {
	b := strconv.AppendInt(nil, t.At.Unix()/60, 10)
	b = strconv.AppendBool(append(b, ' '), t.Looked)
	for _, n := range t.numbers() {
		b = strconv.AppendInt(append(b, ' '), *n, 10)
	}
	return string(b)
}

// parseTrend reads what encode wrote of a minute. A text of another minute, or one that it cannot read, counts as nothing.
func parseTrend(text string, at time.Time) Trend {
	none := Trend{At: at}
	parts := strings.Fields(text)
	t := none
	numbers := t.numbers()
	if len(parts) != len(numbers)+2 || parts[0] != strconv.FormatInt(at.Unix()/60, 10) {
		return none
	}
	t.Looked = parts[1] == "true"
	for i, n := range numbers {
		v, err := strconv.ParseInt(parts[i+2], 10, 64)
		if err != nil || v < 0 {
			return none
		}
		*n = v
	}
	return t
}

// trendField is the field of a minute in the hash of the healths. No schedule has such a name.
func trendField(at time.Time) string {
	return healthPlace + strconv.FormatInt(at.Unix()/60%trendSlots, 10)
}

// Trends returns the trend of each minute that begins at or after from, and before to, the oldest first: at most a week. A minute of which
// nothing is known has only zeros.
func (s *Schedules) Trends(ctx context.Context, from, to time.Time) ([]Trend, error) {
	from = from.Truncate(time.Minute)
	if oldest := to.Add(time.Minute - TrendsKept).Truncate(time.Minute); from.Before(oldest) {
		from = oldest
	}
	var minutes []time.Time
	var fields []string
	for at := from; at.Before(to); at = at.Add(time.Minute) {
		minutes, fields = append(minutes, at), append(fields, trendField(at))
	}
	texts, err := s.q.Health(ctx, fields)
	if err != nil {
		return nil, fmt.Errorf("read the trends: %w", err)
	}
	list := make([]Trend, len(minutes))
	for i, text := range texts {
		list[i] = parseTrend(text, minutes[i].UTC())
	}
	return list, nil
}

// JoinTrends adds the trends of other partitions to those of one, minute by minute. A minute of which a partition tells nothing has as many
// finished tasks as it had before.
func JoinTrends(list []Trend, others ...[]Trend) []Trend {
	list = slices.Clone(list)
	at := map[time.Time]int{}
	for i := range list {
		at[list[i].At] = i
	}
	finished := make([]int64, len(list)) // of the others, as of each minute
	for _, other := range others {
		last := make([]int64, len(list))
		for i := range other {
			o := &other[i]
			k, ok := at[o.At]
			if !ok {
				continue // their clocks are a minute apart
			}
			t := &list[k]
			t.Done, t.Failed, t.Dead, t.Lost = t.Done+o.Done, t.Failed+o.Failed, t.Dead+o.Dead, t.Lost+o.Lost
			t.Missed, t.Skipped = t.Missed+o.Missed, t.Skipped+o.Skipped
			t.Began, t.Lag, t.MaxLag, t.Took, t.MaxTook = t.Began+o.Began, t.Lag+o.Lag, max(t.MaxLag, o.MaxLag), t.Took+o.Took, max(t.MaxTook, o.MaxTook)
			t.Waiting, t.Running = t.Waiting+o.Waiting, t.Running+o.Running
			last[k], t.Looked = o.Finished, t.Looked || o.Looked
		}
		before := int64(0)
		for k := range last {
			before = max(before, last[k])
			finished[k] += before
		}
	}
	own := int64(0)
	for k := range list {
		own = max(own, list[k].Finished)
		list[k].Finished = own + finished[k]
	}
	return list
}

// trends is what a leader knows in its term to count the minutes.
type trends struct {
	jitters map[string]*schedule.Rule // of the schedules that ran; nil: it has none
	version int64                     // of the schedules, as of jitters
	looked  time.Time                 // when it looked at the backlog, by the local clock
}

// take returns what is to be noted of the minutes of some entries, by field, and of this one if it is time to look at the backlog.
func (t *trends) take(ctx context.Context, s *Schedules, read []history.Entry) (map[string]string, error) {
	if err := t.know(ctx, s, read); err != nil {
		return nil, err
	}
	minutes := map[time.Time]*Trend{}
	for i := range read {
		minutes[read[i].At.Truncate(time.Minute)] = nil
	}
	var backlog *queue.Counts
	if time.Since(t.looked) >= backlogEvery {
		n, err := s.q.Counts(ctx)
		if err != nil {
			return nil, err
		}
		backlog, t.looked = &n, time.Now()
		minutes[n.Now.Truncate(time.Minute)] = nil
	}
	at := slices.SortedFunc(maps.Keys(minutes), time.Time.Compare)
	fields := make([]string, len(at))
	for i := range at {
		fields[i] = trendField(at[i])
	}
	texts, err := s.q.Health(ctx, fields)
	if err != nil {
		return nil, err
	}
	for i, text := range texts {
		x := parseTrend(text, at[i])
		minutes[at[i]] = &x
	}
	for i := range read {
		for k := range read[i].Notes {
			n := &read[i].Notes[k]
			lag, began := t.lagOf(n)
			minutes[read[i].At.Truncate(time.Minute)].add(n, lag, began)
		}
	}
	if backlog != nil {
		minutes[backlog.Now.Truncate(time.Minute)].look(backlog.Overdue+backlog.Held, backlog.Running, backlog.Finished)
	}
	set := make(map[string]string, len(at))
	for i := range at {
		set[fields[i]] = minutes[at[i]].encode()
	}
	return set, nil
}

// know reads the rules of the schedules that ran for the first time since any schedule was changed.
func (t *trends) know(ctx context.Context, s *Schedules, read []history.Entry) error {
	version, err := s.q.SchedulesVersion(ctx)
	if err != nil {
		return err
	}
	if version != t.version || t.jitters == nil {
		t.jitters, t.version = map[string]*schedule.Rule{}, version
	}
	var names []string
	for i := range read {
		for k := range read[i].Notes {
			name := read[i].Notes[k].Schedule
			if _, known := t.jitters[name]; name != "" && !known {
				t.jitters[name] = nil
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	list, err := s.q.SchedulesNamed(ctx, names)
	if err != nil {
		t.jitters = nil
		return err
	}
	for _, st := range list {
		if e, err := newEntry(st); err == nil && e != nil && e.s.Jitter > 0 {
			t.jitters[st.Name] = &e.s.Rule
		}
	}
	return nil
}

// lagOf is how long the slot of a run waited after it was due. Only the first run of a slot has a lag.
func (t *trends) lagOf(n *history.Note) (lag time.Duration, began bool) {
	r := RunOf(n)
	if n.TaskID == "" || !r.OnGrid() || r.Attempt > 1 {
		return 0, false
	}
	due := r.Slot
	if rule := t.jitters[r.Schedule]; rule != nil {
		due = rule.JitterFor(r.Schedule, due)
	}
	return max(r.Began.Sub(due), 0), true
}
