package notify

import (
	"encoding/json"
	"fmt"
	"time"
)

// subject is a schedule or a type that is not well, or was not until a short time ago. It is kept in Redis as it was when the last
// window ended.
type subject struct {
	// Row is how many runs failed in a row up to now, and Peak the longest such row since it was last well.
	Row  int `json:"row,omitempty"`
	Peak int `json:"peak,omitempty"`
	// Stale is the most gaps between slots without a success since it was last well.
	Stale float64 `json:"stale,omitempty"`
	// Well is when it first succeeded after the last failure, in Unix milliseconds; 0: it has not.
	Well int64 `json:"well,omitempty"`
	// At is when anything last happened to it.
	At    int64  `json:"at,omitempty"`
	Error string `json:"error,omitempty"`
	// Told is when a message told of this trouble, in Unix milliseconds; see [Trouble].
	Told int64 `json:"told,omitempty"`
	// Deaths are the dead tasks of a schedule; nil: none died since it was last well.
	Deaths *deaths `json:"deaths,omitempty"`

	was     state // at the end of the last window
	touched bool  // since then
}

// state is what decides whether a target has heard of a subject.
type state struct {
	peak  int
	stale float64
}

func (s *subject) state() state { return state{s.Peak, s.Stale} }

func (s *subject) encode() string {
	b, err := json.Marshal(s)
	if err != nil { // its numbers are finite, so this cannot be
		return "{}"
	}
	return string(b)
}

// parseSubject reads what encode wrote. Text of another program counts as nothing.
func parseSubject(text string) *subject {
	s := &subject{}
	if json.Unmarshal([]byte(text), s) != nil {
		s = &subject{}
	}
	s.was = s.state()
	return s
}

func (s *subject) fail(at time.Time, text string) {
	s.Row++
	s.Peak = max(s.Peak, s.Row)
	s.Well, s.At, s.touched = 0, at.UnixMilli(), true
	if text != "" {
		s.Error = shortError(text)
	}
}

func (s *subject) succeed(at time.Time) {
	s.At, s.touched = at.UnixMilli(), true
	s.Row = 0
	if s.Well == 0 {
		s.Well = at.UnixMilli()
	}
}

// goStale notes how stale a schedule is, which says that it is not well.
func (s *subject) goStale(at time.Time, ratio float64) {
	s.Stale = max(s.Stale, ratio)
	s.Well, s.At, s.touched = 0, at.UnixMilli(), true
}

// well reports whether the subject has been well for a whole window.
func (s *subject) well(end time.Time, window time.Duration) bool {
	return s.Well > 0 && end.UnixMilli()-s.Well >= window.Milliseconds()
}

// about names a subject: "schedule" or "type", and its name.
type about struct{ what, name string }

const (
	aSchedule = "schedule"
	aType     = "type"
)

// fails reports whether it is a schedule or a type, of which a round follows the runs. All others are troubles.
func (a about) fails() bool { return a.what == aSchedule || a.what == aType }

// schedule is the name of the schedule, or "" for a type.
func (a about) schedule() string {
	if a.what == aSchedule {
		return a.name
	}
	return ""
}

func (a about) typ() string {
	if a.what == aType {
		return a.name
	}
	return ""
}

// The names under which a round keeps what it knows.
func positionName(window time.Duration) string { return fmt.Sprintf("w %d", window.Milliseconds()) }

func (a about) subjectName(window time.Duration) string {
	return fmt.Sprintf("s %d %s %s", window.Milliseconds(), a.what, a.name)
}

func messageName(id string) string { return "m " + id }
