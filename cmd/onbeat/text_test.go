package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/wording"
)

func TestTable_alignsWhatIsColouredToo(t *testing.T) {
	t.Parallel()
	a := &app{style: style{on: true}}
	table := a.table("NAME", "X")
	table.add(cell{"ä", a.style.red}, "1")
	table.add("long-name", cell{text: "2"})
	var b bytes.Buffer
	table.print(&terminal{w: &b})
	want := "\x1b[2mNAME\x1b[0m       \x1b[2mX\x1b[0m\n\x1b[31mä\x1b[0m          1\nlong-name  2\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0ms", 437 * time.Millisecond: "437ms", 4400 * time.Millisecond: "4.4s", 42 * time.Second: "42s", 24*time.Minute + 3*time.Second: "24m3s",
		26*time.Hour + time.Minute: "26h1m", 75 * time.Hour: "3d3h",
	} {
		if got := wording.Span(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestProgress_isForTerminals(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	silent := (&app{err: &b}).progress()
	silent.say("x")
	silent.clear()
	if b.Len() > 0 {
		t.Errorf("%q", b.String())
	}
	p := &progress{w: &b, began: time.Now().Add(-time.Second)}
	p.say("%d of %d", 1, 2)
	p.say("%d of %d", 2, 2) // too soon
	p.clear()
	if got := strings.ReplaceAll(b.String(), "\r\x1b[K", "|"); got != "|1 of 2|" {
		t.Errorf("%q", got)
	}
}
