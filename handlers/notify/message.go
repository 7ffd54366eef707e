package notify

import (
	"fmt"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/wording"
)

// Message is what a target is told at once: all that happened of one topic in one window.
type Message struct {
	Namespace string    `json:"namespace"`
	Topic     Topic     `json:"topic"`
	From      time.Time `json:"from"` // of the window, or of the time since the last one that an instance looked at
	To        time.Time `json:"to"`
	// Count is how many things happened: tasks, slots, schedules and types, changes of the leader.
	Count int64 `json:"count"`
	// AtLeast says that there may be more: too many schedules fail at once for all of them to be followed.
	AtLeast bool `json:"at_least,omitempty"`
	// Notices are the first few of them.
	Notices []Notice `json:"notices"`
}

// Notice is one thing that happened, or several of one schedule.
type Notice struct {
	At time.Time `json:"at"`
	// Schedule, Task and Type say what it is about; Task and Type of dead tasks. Each may be "".
	Schedule string `json:"schedule,omitempty"`
	Task     string `json:"task,omitempty"`
	Type     string `json:"type,omitempty"`
	// Count is how many slots were missed, how many runs failed in a row, or how many tasks of the schedule died.
	Count int64 `json:"count,omitempty"`
	// Text is what happened, in words.
	Text string `json:"text"`
	// Error is that of the last run, cut to 300 bytes.
	Error string `json:"error,omitempty"`
}

const (
	mostNotices = 5   // that a message names
	mostError   = 300 // bytes of an error
)

// Title is the message in one line.
func (m *Message) Title() string {
	what := m.Topic.counted(m.Count)
	if m.AtLeast {
		what = "at least " + what
	}
	return m.Namespace + ": " + what
}

// Lines are the notices, one a line, and how many more there are.
func (m *Message) Lines() []string {
	var lines []string
	named := int64(0)
	for i := range m.Notices {
		n := &m.Notices[i]
		lines = append(lines, n.Line())
		if m.Topic == Missed || m.Topic == Dead && n.Count > 1 {
			named += n.Count
		} else {
			named++
		}
	}
	if more := m.Count - named; more > 0 && len(lines) > 0 {
		lines = append(lines, "and "+grouped(more)+" more")
	}
	return lines
}

// Line is the notice in one line.
func (n *Notice) Line() string {
	var b strings.Builder
	switch {
	case n.Schedule != "":
		b.WriteString(n.Schedule + ": ")
	case n.Task != "" && n.Type != "":
		fmt.Fprintf(&b, "%s (%s): ", n.Task, n.Type)
	case n.Task+n.Type != "":
		b.WriteString(n.Task + n.Type + ": ")
	}
	b.WriteString(n.Text)
	if n.Error != "" {
		b.WriteString(": " + n.Error)
	}
	return oneLine(b.String())
}

// oneLine is a text without control characters, which an error may have.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 }), " ")
}

// shortError is an error as a notice keeps it: the first line, which a stack may follow.
func shortError(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return wording.Cut(oneLine(first), mostError)
}

// group gathers the notices of one message.
type group struct {
	count   int64
	atLeast bool
	notices []Notice
}

// add counts n things, and keeps the notice if it is one of the first. The missed slots of one schedule are one notice.
func (g *group) add(topic Topic, n int64, notice Notice) {
	g.count += n
	if topic == Missed {
		for i := range g.notices {
			if g.notices[i].Schedule == notice.Schedule {
				g.notices[i].Count += n
				g.notices[i].Text = missedText(g.notices[i].Count, "")
				return
			}
		}
	}
	if len(g.notices) < mostNotices {
		g.notices = append(g.notices, notice)
	}
}

func missedText(n int64, why string) string {
	text := grouped(n) + " slots were missed"
	if n == 1 {
		text = "1 slot was missed"
	}
	if why != "" {
		text += " (" + why + ")"
	}
	return text
}
