package sqlarchive

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/history"
)

var (
	runs = newTable("onbeat_runs", `task begun outcome attempt schedule slot due claimed ended took_ms error output why type queue
		instance generation release noted entry line`)
	fates = newTable("onbeat_fates", "schedule outcome first_slot last_slot slots why instance generation release noted entry line")
)

// place is where a note was in the history: its entry's ID in two parts, and its line there.
type place struct {
	noted       moment
	entry, line int64
}

func placeOf(id string) place {
	ms, seq, _ := strings.Cut(id, "-")
	noted, _ := strconv.ParseInt(ms, 10, 64) // the nearest number if it is out of range
	entry, _ := strconv.ParseInt(seq, 10, 64)
	return place{noted: ofMs(noted), entry: max(entry, 0)}
}

func (p place) id() string {
	return strconv.FormatInt(p.noted.UnixMilli(), 10) + "-" + strconv.FormatInt(p.entry, 10)
}

// at is when the entry was written; zero if its ID does not say.
func (p place) at() time.Time { return history.At(p.id()) }

// compare compares the entries of two places.
func (p place) compare(q place) int {
	return cmp.Or(p.noted.Compare(q.noted.Time), cmp.Compare(p.entry, q.entry))
}

func (p *place) values() []any { return []any{&p.noted, &p.entry, &p.line} }

// writer is what the notes of an entry share: who wrote them.
type writer struct {
	instance   string
	generation number
	release    string
}

func writerOf(n *history.Note) writer {
	return writer{instance: text(n.Instance), generation: number(n.Gen), release: text(n.Release)}
}

func (w *writer) values() []any { return []any{&w.instance, &w.generation, &w.release} }

func (w *writer) tell(n *history.Note) {
	n.Instance, n.Gen, n.Release = w.instance, int64(w.generation), w.release
}

// run is a row of onbeat_runs.
type run struct {
	task                      string
	begun                     moment
	outcome                   string
	attempt                   int64
	schedule                  string
	slot, due, claimed, ended moment
	took                      number
	err, output, why          string
	kind, queue               string
	writer
	place
}

func (r *run) values() []any {
	list := []any{&r.task, &r.begun, &r.outcome, &r.attempt, &r.schedule, &r.slot, &r.due, &r.claimed, &r.ended, &r.took,
		&r.err, &r.output, &r.why, &r.kind, &r.queue}
	return append(append(list, r.writer.values()...), r.place.values()...)
}

// longestRun is how long before its note a run may have been claimed, and be found again by that time if it is noted twice. The
// row of a longer run begins when it was noted: so no row lies further than this from its note, and a day of runs can be dropped.
const longestRun = 3 * day

func runOf(p place, n *history.Note) *run {
	r := &run{
		task: name(n.TaskID), outcome: name(string(n.Word)), attempt: int64(max(math.MinInt32, min(n.Attempt, math.MaxInt32))),
		schedule: name(cmp.Or(n.Maker, n.Schedule)), slot: at(n.Slot), due: at(n.Due), claimed: at(n.Claimed),
		err: text(n.Error), output: text(n.Output), why: text(n.Why), kind: text(n.Type), queue: text(n.Queue),
		writer: writerOf(n), place: p,
	}
	if n.Took > 0 {
		r.took = number(max(n.Took.Milliseconds(), 1))
	}
	r.begun = p.noted
	if early := p.noted.Sub(r.claimed.Time); !r.claimed.IsZero() && early <= longestRun && early >= -day {
		r.begun = r.claimed
	}
	if !r.claimed.IsZero() && r.took > 0 {
		r.ended = at(r.claimed.Add(n.Took))
	}
	return r
}

func (r *run) where() place { return r.place }

func (r *run) note() history.Note {
	n := history.Note{
		Maker: r.schedule, Slot: r.slot.Time, Word: history.Word(r.outcome), Attempt: int(r.attempt), Claimed: r.claimed.Time,
		Took: time.Duration(min(int64(r.took), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond, Error: r.err,
		Type: r.kind, Queue: r.queue, Due: r.due.Time, Output: r.output, Why: r.why, TaskID: r.task, At: r.at(),
	}
	if !r.slot.IsZero() {
		n.Schedule = r.schedule
	}
	r.tell(&n)
	return n
}

// fate is a row of onbeat_fates.
type fate struct {
	schedule, outcome string
	first, last       moment
	slots             int64
	why               string
	writer
	place
}

func (f *fate) values() []any {
	list := []any{&f.schedule, &f.outcome, &f.first, &f.last, &f.slots, &f.why}
	return append(append(list, f.writer.values()...), f.place.values()...)
}

func fateOf(p place, n *history.Note) *fate {
	return &fate{
		schedule: name(n.Schedule), outcome: name(string(n.Word)), first: at(n.From), last: at(n.To), slots: n.Count,
		why: text(n.Why), writer: writerOf(n), place: p,
	}
}

func (f *fate) where() place { return f.place }

func (f *fate) note() history.Note {
	n := history.Note{
		Schedule: f.schedule, From: f.first.Time, To: f.last.Time, Word: history.Word(f.outcome), Count: f.slots, Why: f.why, At: f.at(),
	}
	f.tell(&n)
	return n
}

// split turns the notes of entries into rows.
func split(entries []history.Entry) (ran, ranges []row) {
	for _, e := range entries {
		p := placeOf(e.ID)
		for i := range e.Notes {
			p.line = int64(i)
			if n := &e.Notes[i]; n.TaskID == "" { // only a range has none
				ranges = append(ranges, fateOf(p, n))
			} else {
				ran = append(ran, runOf(p, n))
			}
		}
	}
	return ran, ranges
}
