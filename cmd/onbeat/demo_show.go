package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/trial"
)

// demoShow is the picture of the demo. On a terminal it is redrawn in place; elsewhere each event is a line.
type demoShow struct {
	lanes    []*demoLane
	arrivals func() []trial.Arrival
	began    time.Time
	w        io.Writer
	live     bool
	quiet    bool
	style    style
	caption  [2]string
	height   int // lines drawn
	told     int // arrivals that the lines have shown
	over     bool
}

func newDemoShow(a *app, lanes []*demoLane) *demoShow {
	return &demoShow{
		lanes: lanes, began: time.Now(), w: a.out,
		live: isTerminal(a.out) && a.env("TERM") != "dumb", quiet: a.JSON, style: a.style,
	}
}

// printf prints a line that stays.
func (s *demoShow) printf(format string, args ...any) {
	if !s.quiet {
		fmt.Fprintf(s.w, format+"\n", args...)
	}
}

// act shows what the demo does, and why it matters.
func (s *demoShow) act(what, why string) {
	s.caption = [2]string{what, why}
	switch {
	case s.quiet:
	case s.live:
		s.paint()
	default:
		s.tell(1)
		fmt.Fprintf(s.w, "%5.1fs  %s\n        %s\n", time.Since(s.began).Seconds(), what, why)
	}
}

// draw redraws the picture.
func (s *demoShow) draw() {
	switch {
	case s.quiet || s.over:
	case s.live:
		s.paint()
	default:
		s.tell(3)
	}
}

// end draws the picture for the last time.
func (s *demoShow) end() {
	s.caption = [2]string{}
	switch {
	case s.quiet || s.over:
	case s.live:
		s.paint()
	default:
		s.tell(1)
	}
	s.over = true
}

// tell prints the beats since the last line, if there are at least this many.
func (s *demoShow) tell(least int) {
	list := s.arrivals()
	for len(list)-s.told >= least && len(list) > s.told {
		from := s.told
		to := from + 1
		for to < len(list) && list[to].Release == list[from].Release {
			to++
		}
		first, last := s.number(list[from], list), 0
		worst := time.Duration(0)
		for _, a := range list[from:to] { // beats that were held up arrive together, in any order
			first, last = min(first, s.number(a, list)), max(last, s.number(a, list))
			worst = max(worst, a.At.Sub(a.Slot))
		}
		s.told = to
		beats := fmt.Sprintf("beat %d", first)
		if last != first {
			beats = fmt.Sprintf("beats %d to %d", first, last)
		}
		fmt.Fprintf(s.w, "        %s on %s, at most %.1f ms after the slot\n", beats, oneCell(list[from].Release), trial.Millis(worst))
	}
}

// number returns the number of a slot, from 0.
func (s *demoShow) number(a trial.Arrival, list []trial.Arrival) int {
	return int(a.Slot.Sub(list[0].Slot).Round(demoEvery/2) / demoEvery)
}

// colourOf returns the colour of a lane's release.
func (s *demoShow) colourOf(lane int, text string) string {
	return []func(string) string{s.style.cyan, s.style.yellow, s.style.green}[lane%3](text)
}

// lateBeat is the delay from which on a beat is drawn as late.
const lateBeat = 100 * time.Millisecond

// paint redraws the whole picture in place.
func (s *demoShow) paint() {
	list := s.arrivals()
	var b strings.Builder
	if s.height > 0 {
		b.WriteString(control(strconv.Itoa(s.height) + "A"))
	}
	lines := []string{""}
	for i, l := range s.lanes {
		lines = append(lines, fmt.Sprintf("  %s  %s %s", s.style.bold(l.release), s.state(i, l.state), s.marks(i, l.release, list)))
	}
	lines = append(lines, s.style.dim("                 "+ruler(list))+" ", "")
	lines = append(lines, s.captionLines()...)
	for _, line := range lines {
		b.WriteString(control("2K") + line + "\n")
	}
	s.height = len(lines)
	_, _ = io.WriteString(s.w, b.String())
}

// captionLines returns what the demo does now, or the legend at the end. The number of lines is constant, so that the picture
// stays in place.
func (s *demoShow) captionLines() []string {
	lines := []string{s.style.dim("  ● on time  ◐ held up  · played by another")}
	if s.caption[0] != "" {
		lines[0] = fmt.Sprintf("  %s  ", s.style.dim(fmt.Sprintf("%4.1fs", time.Since(s.began).Seconds())))
		for i, text := range wrap(s.caption[0], captionWidth) {
			if i > 0 {
				lines = append(lines, "         ")
			}
			lines[i] += s.style.bold(text)
		}
		for _, text := range wrap(s.caption[1], captionWidth) {
			lines = append(lines, "         "+s.style.dim(text))
		}
	}
	for len(lines) < 4 {
		lines = append(lines, "")
	}
	return lines[:4]
}

// captionWidth leaves room for the time on a terminal of 80 columns.
const captionWidth = 70

// wrap breaks a text into lines between words.
func wrap(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

func (s *demoShow) state(lane int, state string) string {
	text := fmt.Sprintf("%-10s", state)
	switch state {
	case "leads":
		return s.colourOf(lane, text)
	case "killed", "frozen":
		return s.style.red(text)
	}
	return s.style.dim(text)
}

// marks returns the beats of one lane, one column per slot.
func (s *demoShow) marks(lane int, release string, list []trial.Arrival) string {
	if len(list) == 0 {
		return ""
	}
	columns := 0
	for _, a := range list {
		columns = max(columns, s.number(a, list)+1)
	}
	cells := make([]string, columns)
	for i := range cells {
		cells[i] = " "
	}
	for _, a := range list {
		n := s.number(a, list)
		if n < 0 {
			continue
		}
		switch {
		case a.Release != release && cells[n] == " ":
			cells[n] = s.style.dim("·")
		case a.Release != release:
		case a.At.Sub(a.Slot) > lateBeat:
			cells[n] = s.colourOf(lane, "◐")
		default:
			cells[n] = s.colourOf(lane, "●")
		}
	}
	return strings.Join(cells, "")
}

// ruler numbers the columns by fives.
func ruler(list []trial.Arrival) string {
	if len(list) == 0 {
		return ""
	}
	text := ""
	for n := 0; time.Duration(n)*demoEvery <= list[len(list)-1].Slot.Sub(list[0].Slot); n += 5 {
		text += fmt.Sprintf("%-5d", n)
	}
	return text
}
