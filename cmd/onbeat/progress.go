package main

import (
	"fmt"
	"io"
	"time"
)

// progress shows on a terminal how far long work has come. Elsewhere it prints nothing.
type progress struct {
	w     io.Writer // nil: silent
	last  time.Time
	began time.Time
	shown bool
}

func (a *app) progress() *progress {
	p := &progress{began: time.Now()}
	if isTerminal(a.err) {
		p.w = unfiltered(a.err)
	}
	return p
}

// say shows how far the work is, at most a few times a second, and not in the first moment.
func (p *progress) say(format string, args ...any) {
	now := time.Now()
	if p.w == nil || now.Sub(p.began) < 300*time.Millisecond || now.Sub(p.last) < 100*time.Millisecond {
		return
	}
	p.last, p.shown = now, true
	fmt.Fprint(p.w, "\r\x1b[K"+oneCell(fmt.Sprintf(format, args...)))
}

// clear removes the line.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
