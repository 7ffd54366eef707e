package notify

import (
	"fmt"
	"github.com/onbeat/onbeat/internal/wording"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// round gathers what the targets of one window are to hear. All of it but the open window is in Redis; the open window is read
// again from there by the next leader.
type round struct {
	window  time.Duration
	targets []*Target
	place   position
	saved   string // the text of the place as Redis has it

	subjects map[about]*subject
	gone     []about // subjects that left since the last window
	crowded  bool    // there are more than are followed
	groups   map[groupKey]*group
}

type groupKey struct {
	target string
	topic  Topic
}

// mostSubjects is how many schedules and types are followed at once for failing and stale.
const mostSubjects = 2000

// forgetAfter is how long a subject is kept of which nothing more is heard: its schedule is gone, perhaps.
const forgetAfter = 30 * 24 * time.Hour

func newRound(window time.Duration) *round {
	return &round{window: window, subjects: map[about]*subject{}, groups: map[groupKey]*group{}}
}

// end is when the open window ends.
func (r *round) end() time.Time { return aligned(time.UnixMilli(r.place.UpTo), r.window).Add(r.window) }

// ended returns the end of the last window that is over, if one is. Windows in which no instance led are one with the next.
func (r *round) ended(now time.Time) (end time.Time, ok bool) {
	end = aligned(now, r.window)
	return end, end.UnixMilli() > r.place.UpTo
}

// any reports whether a target hears of a topic.
func (r *round) any(topic Topic) bool {
	return slices.ContainsFunc(r.targets, func(t *Target) bool { return slices.Contains(t.On, topic) })
}

// add tells each target that hears of it.
func (r *round) add(topic Topic, n int64, notice Notice) {
	for _, t := range r.targets {
		if t.hears(topic, notice.Schedule) {
			r.tell(t, topic, n, notice)
		}
	}
}

func (r *round) tell(t *Target, topic Topic, n int64, notice Notice) {
	k := groupKey{t.Name, topic}
	if r.groups[k] == nil {
		r.groups[k] = &group{}
	}
	r.groups[k].add(topic, n, notice)
}

// takeEvent takes in an event that it has not read before.
func (r *round) takeEvent(e *queue.Event) {
	if compareIDs(e.ID, r.place.Event) <= 0 {
		return
	}
	r.place.Event = e.ID
	switch e.Kind {
	case "leader", "no leader", "leads but cannot schedule":
		r.add(Leader, 1, Notice{At: e.At, Text: leaderText(e)})
	case "archive behind", "archive lost":
		r.add(ArchiveBehind, 1, Notice{At: e.At, Text: archiveText(e)})
	case "schedule paused", "schedule deleted", "schedule retired":
		r.forget(about{aSchedule, e.Fields["schedule"]}) // nothing more is to be expected of it
		if e.Kind == "schedule retired" {
			r.add(Retired, 1, Notice{At: e.At, Schedule: e.Fields["schedule"], Text: retiredText(e.Fields["release"])})
		}
	}
}

func leaderText(e *queue.Event) string {
	who := e.Fields["instance"]
	if release := e.Fields["release"]; release != "" {
		who += " (release " + release + ")"
	}
	switch e.Kind {
	case "no leader":
		return "no instance can lead; " + who + " led last"
	case "leads but cannot schedule":
		return who + " leads but cannot schedule: " + e.Fields["reason"]
	}
	if before := e.Fields["before"]; before != "" {
		return who + " leads, where " + before + " led before"
	}
	return who + " leads, where none did"
}

// retiredText says what a person can do about a schedule that a release does not declare.
func retiredText(release string) string {
	who := "the release that leads"
	if release != "" {
		who = "release " + release
	}
	return who + " does not declare it, so it does not run; declare it again within 30 days, and it goes on, on its grid"
}

func archiveText(e *queue.Event) string {
	text := e.Kind
	for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
		text += fmt.Sprintf(", %s %s", name, wording.Field(name, e.Fields[name]))
	}
	return text
}

// takeEntry takes in an entry of the history, or of the runs of other tasks, that it has not read before. Place is up to where it
// has read that stream.
func (r *round) takeEntry(e *history.Entry, place *string) {
	if compareIDs(e.ID, *place) <= 0 {
		return
	}
	*place = e.ID
	for i := range e.Notes {
		r.takeNote(&e.Notes[i])
	}
}

func (r *round) takeNote(n *history.Note) {
	switch n.Word {
	case history.Missed:
		slots := int64(1)
		if n.TaskID == "" {
			slots = n.Count
		}
		if n.Schedule != "" && slots > 0 {
			r.add(Missed, slots, Notice{At: n.At, Schedule: n.Schedule, Count: slots, Text: missedText(slots, n.Why)})
		}
	case history.Failed, history.Dead:
		if a, ok := aboutOf(n); ok {
			if s := r.subject(a); s != nil {
				s.fail(n.At, n.Error)
			}
		}
	case history.Done:
		if a, ok := aboutOf(n); ok && r.subjects[a] != nil {
			r.subjects[a].succeed(n.At)
		}
	}
}

// aboutOf is the schedule of a run, or else its type. A message that could not be sent is no reason for another one.
func aboutOf(n *history.Note) (about, bool) {
	switch {
	case isOwn(n.TaskID), strings.HasPrefix(n.Type, task.Own):
		return about{}, false
	case n.Maker != "":
		return about{aSchedule, n.Maker}, true
	default:
		return about{aType, n.Type}, n.Type != ""
	}
}

// subject is what is known of a subject, which begins now if it is new; nil for a schedule or a type of which there are too many.
// Troubles are not refused: a status has few, and a crowd that fails must not hide them.
func (r *round) subject(a about) *subject {
	s := r.subjects[a]
	if s == nil {
		if len(r.subjects) >= mostSubjects && a.fails() {
			r.crowded = true
			return nil
		}
		s = &subject{}
		r.subjects[a] = s
	}
	return s
}

func (r *round) forget(a about) {
	if r.subjects[a] != nil {
		delete(r.subjects, a)
		r.gone = append(r.gone, a)
	}
}

// judge takes in how stale schedules are.
func (r *round) judge(end time.Time, list []producer.Stale) {
	lowest := 0
	for _, t := range r.targets {
		if slices.Contains(t.On, Stale) && (lowest == 0 || t.Stale < lowest) {
			lowest = t.Stale
		}
	}
	if lowest == 0 {
		return
	}
	for _, x := range list {
		if x.Ratio < float64(lowest) {
			continue
		}
		if s := r.subject(about{aSchedule, x.Schedule}); s != nil {
			s.goStale(end, x.Ratio)
		}
	}
}

// settle tells of the subjects that are not well any more, or well again. A subject that is well for less than a window is
// neither, so that a subject that fails and succeeds in turn is told of once.
func (r *round) settle(end time.Time) {
	for _, a := range r.sorted() {
		s := r.subjects[a]
		if !a.fails() {
			continue // judged elsewhere
		}
		for _, t := range r.targets {
			r.compare(t, a, s, end)
		}
		if s.well(end, r.window) || end.UnixMilli()-s.At > forgetAfter.Milliseconds() {
			r.forget(a)
		}
	}
	if r.crowded {
		for k, g := range r.groups {
			g.atLeast = k.topic == Failing || k.topic == Stale
		}
	}
}

func (r *round) compare(t *Target, a about, s *subject, end time.Time) {
	n := Notice{At: time.UnixMilli(s.At).UTC(), Schedule: a.schedule(), Type: a.typ()}
	failing := t.hears(Failing, a.schedule()) && s.Peak >= t.Failing
	stale := t.hears(Stale, a.schedule()) && s.Stale >= float64(t.Stale)
	if failing && s.was.peak < t.Failing {
		told := n
		told.Count, told.Error = int64(s.Peak), s.Error
		told.Text = fmt.Sprintf("%d attempts in a row failed", s.Peak)
		if s.Peak == 1 {
			told.Text = "a failure"
		}
		r.tell(t, Failing, 1, told)
	}
	if stale && s.was.stale < float64(t.Stale) {
		told := n
		told.Text = fmt.Sprintf("no success for %.1f times the gap between its slots", s.Stale)
		r.tell(t, Stale, 1, told)
	}
	if (failing || stale) && s.well(end, r.window) && t.hears(Recovered, a.schedule()) {
		told := n
		told.Text = "succeeds again since " + time.UnixMilli(s.Well).UTC().Format(time.RFC3339)
		r.tell(t, Recovered, 1, told)
	}
}

// messages are those of the window, by the IDs of their tasks. Place is a name that only this partition has.
func (r *round) messages(namespace, place string, end time.Time) map[string]delivery {
	all := map[string]delivery{}
	for k, g := range r.groups {
		all[messageID(place, k, r.window, end)] = delivery{Target: k.target, Message: Message{
			Namespace: namespace, Topic: k.topic, From: time.UnixMilli(r.place.UpTo).UTC(), To: end,
			Count: g.count, AtLeast: g.atLeast, Notices: g.notices,
		}}
	}
	return all
}

// change is what Redis is to note at the end of the window.
func (r *round) change(end time.Time) queue.NoticeChange {
	place := r.place
	place.UpTo, place.Died = end.UnixMilli(), 0
	c := queue.NoticeChange{Name: positionName(r.window), Was: r.saved, Set: map[string]string{positionName(r.window): place.encode()}}
	for a, s := range r.subjects {
		if s.touched {
			c.Set[a.subjectName(r.window)] = s.encode()
		}
	}
	for _, a := range r.gone {
		if r.subjects[a] == nil {
			c.Remove = append(c.Remove, a.subjectName(r.window))
		}
	}
	return c
}

// begin begins the next window, once Redis has noted the last one.
func (r *round) begin(end time.Time, saved string) {
	r.place.UpTo, r.place.Died, r.saved = end.UnixMilli(), 0, saved
	for _, s := range r.subjects {
		s.was, s.touched = s.state(), false
	}
	r.gone, r.crowded, r.groups = nil, false, map[groupKey]*group{}
}
