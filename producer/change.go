package producer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// changeTries is how often a change is worked out again because another caller was faster.
const changeTries = 20

// These functions work out a change from a state that was read at now. They are pure, so that a caller can retry them.

// replace gives a schedule the definition s. It returns nil if the schedule has it already.
func replace(st queue.Stored, s *Schedule, head definitionHead, now time.Time) (*queue.Change, error) {
	next := definition{definitionHead: head, Schedule: *s}.sealedWith(st.Seal)
	text, err := next.encode()
	if err != nil {
		return nil, err
	}
	c := &queue.Change{Name: s.Name, Expect: st.Last, Definition: text, Event: "schedule changed"}
	if st.Definition == "" || st.Last == "" {
		c.Event = "schedule made"
		var past bool
		if c.Anchor, past = s.anchor(); past {
			c.Settled, c.Note = now, s.beforeMade(now)
		}
		return c, nil
	}
	old, err := newEntry(st)
	if err != nil { // unreadable here, but this caller owns the name now: start over
		c.Anchor, _ = s.anchor()
		c.Settled, c.Behind = now, st.Behind
		return c, nil
	}
	was, err := readDefinition(st)
	if err == nil {
		err = was.checkOpens(st.Seal)
	}
	if err != nil {
		return nil, err
	}
	if same(&was.Schedule, s) && was.Origin == head.Origin {
		return nil, nil
	}
	if was.Start != s.Start { // Start changed; else the anchor stays
		c.Anchor, _ = s.anchor()
	}
	c.Lane, c.Ahead = old.ahead(now)
	if !sameTimes(&was.Schedule, s) {
		c.Behind, c.Note = st.Behind, old.forgone(history.Changed, "schedule was changed")
	}
	if old.ended() || !sameTimes(&was.Schedule, s) {
		c.Settled = now // the slots up to now are of the old grid
		c.Note = history.Join(c.Note, old.unpushed(now, history.Changed, "schedule was changed"))
	}
	if !sameRule(was.Rule, s.Rule) {
		c.Note = history.Join(c.Note, old.was(now))
	}
	return c, nil
}

func sameRule(a, b schedule.Rule) bool {
	x, err1 := a.MarshalJSON()
	y, err2 := b.MarshalJSON()
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// beforeMade notes the slots of a schedule whose start lies in the past: those before its creation are not run.
func (s *Schedule) beforeMade(now time.Time) string {
	a, fromNow := s.anchor()
	if !fromNow || !a.At.Before(now) {
		return ""
	}
	grid, err := s.Grid(a.At)
	if err != nil {
		return ""
	}
	first := grid.Next(a.At.Add(-time.Nanosecond))
	if first.IsZero() || first.After(now) {
		return ""
	}
	n := grid.Count(first.Add(-time.Nanosecond), now)
	return history.Range(s.Name, first, grid.Prev(now.Add(time.Nanosecond)), history.Changed, n, "schedule was made")
}

// was notes the rule that held until now, from its anchor on. Without it, an audit could not tell later which slots were
// expected.
func (e *entry) was(now time.Time) string {
	rule, err := json.Marshal(e.s.Rule)
	if err != nil {
		return ""
	}
	return history.Range(e.s.Name, e.last.Anchor, now, history.Was, 0, string(rule))
}

// sameTimes reports whether two schedules have the same slots.
func sameTimes(a, b *Schedule) bool {
	return a.Every == b.Every && a.Cron == b.Cron && a.Timezone == b.Timezone && a.DST == b.DST && a.Start == b.Start
}

// remove deletes a schedule, and keeps its definition and last run, settled up to now. The history notes its slots that do not
// run under the word.
func remove(st queue.Stored, word history.Word, now time.Time) (*queue.Change, error) {
	c := &queue.Change{Name: st.Name, Expect: st.Last, Delete: true, Event: "schedule deleted"}
	if e, err := newEntry(st); err == nil && e != nil {
		c.Lane, c.Ahead = e.ahead(now)
		c.Behind = st.Behind
		why := "schedule was " + string(word)
		c.Note = history.Join(history.Join(e.forgone(word, why), e.unpushed(now, word, why)), e.was(now))
		if !e.spent() {
			c.Settled = now
		}
	}
	return c, nil
}

// retire deletes a schedule that a release no longer declares.
func retire(st queue.Stored, release string, now time.Time) (*queue.Change, error) {
	c, err := remove(st, history.Retired, now)
	if err != nil {
		return nil, err
	}
	c.Event, c.Retire, c.By = "schedule retired", true, release
	return c, nil
}

// comeBack turns the change that makes a schedule into one that lets it go on as it was when it was retired or deleted: on
// its grid, with its runs, and paused if it was. The slots since then are noted, and none of them runs. A schedule
// that cannot be read here is made anew.
func comeBack(r queue.Retired, made *queue.Change, s *Schedule, now time.Time) (*queue.Change, error) {
	was, err := decodeDefinition(r.Name, r.Definition)
	if err != nil {
		return made, nil //nolint:nilerr // a newer release wrote it
	}
	last, err := queue.ParseLast(r.Last)
	if err != nil {
		return made, nil //nolint:nilerr // damaged
	}
	c := *made
	c.Event, c.Note, c.Settled = "schedule restored", "", time.Time{}
	c.Pause, c.Runs = &last.Paused, last.Runs
	if was.Start == s.Start { // else Start changed, and the schedule begins anew
		c.Anchor = queue.Anchor{At: last.Anchor}
	}
	if c.Anchor.At.IsZero() {
		return &c, nil
	}
	last.Anchor = c.Anchor.At
	grid, err := s.Grid(last.Anchor)
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", s.Name, err)
	}
	e := &entry{s: s, grid: grid, last: last}
	if e.exhausted() {
		c.Settled = last.Slot
		return &c, nil
	}
	word := history.Retired
	if r.Deleted {
		word = history.Deleted
	}
	c.Settled, c.Note = maxTime(now, last.Slot), e.unpushed(now, word, "schedule was "+string(word))
	return &c, nil
}

// pause pauses a schedule for a reason, where another may be noted, or resumes it. It returns nil if there is nothing to change.
func pause(st queue.Stored, paused bool, reason, noted string, now time.Time) (*queue.Change, error) {
	e, err := newEntry(st)
	if err != nil {
		return nil, err
	}
	if e == nil { // a definition without a last run: another program wrote it
		return nil, fmt.Errorf("schedule %q: %w", st.Name, task.ErrNotFound)
	}
	if e.last.Paused == paused && (reason == "" || reason == noted) {
		return nil, nil
	}
	c := &queue.Change{Name: st.Name, Expect: st.Last, Pause: &paused, Reason: reason, Event: "schedule paused"}
	if e.last.Paused == paused { // for another reason
		return c, nil
	}
	c.Changes = encodeChanges([]FieldChange{{"paused", strconv.FormatBool(!paused), strconv.FormatBool(paused)}})
	if paused {
		c.Lane, c.Ahead = e.ahead(now)
		return c, nil
	}
	c.Event, c.Settled = "schedule resumed", now
	c.Note = e.unpushed(now, history.Paused, "schedule was paused")
	return c, nil
}

// withdrawn is how far before now slots still count as ahead, because time passes until the script looks.
const withdrawn = 2 * time.Second

// ahead lists the slots that may have been pushed ahead of now, newest first.
func (e *entry) ahead(now time.Time) (queue.Lane, []queue.Ahead) {
	if !e.last.Slot.After(now.Add(-withdrawn)) {
		return queue.Lane{}, nil
	}
	list := slices.Collect(e.grid.Between(now.Add(-withdrawn), e.last.Slot))
	slices.Reverse(list)
	return e.s.lane(), queue.RunsOf(list)
}

// unpushed notes the slots up to now that were never pushed and never will be.
func (e *entry) unpushed(now time.Time, word history.Word, why string) string {
	switch {
	case e.last.Paused:
		word, why = history.Paused, "schedule was paused"
	case e.exhausted(): // its rule alone does not say that there are none
		why = "schedule had no runs left"
	}
	return e.rest(now, word, why)
}

// rest notes the slots after the last run up to now.
func (e *entry) rest(now time.Time, word history.Word, why string) string {
	first := e.after(e.last.Slot)
	if first.IsZero() || first.After(now) {
		return ""
	}
	n := e.grid.Count(first.Add(-time.Nanosecond), now)
	return history.Range(e.s.Name, first, e.upTo(now), word, n, why)
}
