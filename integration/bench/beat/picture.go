package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/integration/internal/beats"
)

// The measures of the picture, in pixels.
const (
	pictureWide = 1200
	namesWide   = 116
	countsWide  = 208
	rowTall     = 34
	headTall    = 46
	gapWide     = 10 // between two acts
)

// style has the colours of the dashboard, in light and in dark, and marks of a shape of their own, so that colour is not needed.
const style = `<style>
text { font: 13px system-ui, sans-serif; fill: #1a2422; }
.quiet { fill: #55635f; font-size: 12px; } .ours { font-weight: 650; }
.ground { fill: #ffffff; } .act { fill: #eef1ee; } .grid { stroke: #d9dfdb; }
.on { fill: #0b6e4f; } .off { fill: #b35300; } .missed { fill: #ffffff; stroke: #b3261e; stroke-width: 1.8; stroke-dasharray: 2.2 2; }
.doubled { fill: #6b3fa0; } .down { fill: none; stroke: #66736f; stroke-width: 1.2; }
@media (prefers-color-scheme: dark) {
text { fill: #e6ebe9; }
.quiet { fill: #9fada9; }
.ground { fill: #1c2225; } .act { fill: #171c1f; } .grid { stroke: #323b40; }
.on { fill: #5fd0a0; } .off { fill: #ffa04a; } .missed { fill: #1c2225; stroke: #ff8a80; }
.doubled { fill: #c9a6ff; } .down { stroke: #8d9a96; }
}
</style>
`

// titles are the acts in the words of the picture.
var titles = map[string]string{
	updates: "10 rolling updates", kills: "4 × kill -9", freezes: "2 × frozen 5 s", away: "away 5 s", recreates: "4 × stopped, started 2 s later",
}

// picture draws the job of five seconds: a row for each peer, a mark for each beat. Of several runs it takes the one in the middle.
func picture(all []*result) string {
	var rows []*result
	for _, g := range groupsOf(all) {
		if list := slices.DeleteFunc(slices.Clone(g[plain]), func(r *result) bool { return r.Starved }); len(list) > 0 {
			slices.SortStableFunc(list, func(a, b *result) int { return cmp.Compare(faults(a), faults(b)) })
			rows = append(rows, list[(len(list)-1)/2])
		}
	}
	slices.SortFunc(rows, func(a, b *result) int { return slices.Index(names, a.Peer) - slices.Index(names, b.Peer) })
	p := &drawing{tall: headTall + rowTall*len(rows) + 34}
	p.scale(rows)
	p.head(len(rows))
	for i, r := range rows {
		p.row(r, i)
	}
	p.legend(len(rows))
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">`+"\n<title>%s</title>\n%s%s</svg>\n",
		pictureWide, p.tall, "A job each five seconds, through one story, by onbeat and its peers: a row for each, a mark for each beat", style, p.text.String())
}

func faults(r *result) int {
	c := r.Jobs[five].Sum
	return c.Missed + c.Doubled + c.OffGrid
}

type drawing struct {
	text      strings.Builder
	tall      int
	perSecond float64
	at        map[string]float64       // where an act begins
	lasts     map[string]time.Duration // as long as with the slowest peer
}

func (p *drawing) write(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// actOf returns the act that a moment lies in, and when it began and ended.
func (r *result) actOf(t time.Time) (name string, from, until time.Time) {
	for i, a := range r.Acts[1:] {
		if i > 0 && t.Before(a.From) {
			break
		}
		name, from, until = a.Name, a.From, r.Until
		if i+2 < len(r.Acts) {
			until = r.Acts[i+2].From
		}
	}
	return name, from, until
}

// scale gives each act the width that it needs with the slowest peer.
func (p *drawing) scale(rows []*result) {
	p.at, p.lasts = map[string]float64{}, map[string]time.Duration{}
	var sum time.Duration
	for _, name := range acts {
		for _, r := range rows {
			for _, a := range r.Acts {
				if a.Name == name {
					_, from, until := r.actOf(a.From)
					p.lasts[name] = max(p.lasts[name], until.Sub(from))
				}
			}
		}
		sum += p.lasts[name]
	}
	wide := float64(pictureWide - namesWide - countsWide - gapWide*len(acts))
	p.perSecond = wide / sum.Seconds()
	x := float64(namesWide)
	for _, name := range acts {
		p.at[name] = x
		x += p.lasts[name].Seconds()*p.perSecond + gapWide
	}
}

func (p *drawing) head(rows int) {
	p.write(`<rect class="ground" width="%d" height="%d" rx="8"/>`, pictureWide, p.tall)
	for _, name := range acts {
		wide := p.lasts[name].Seconds() * p.perSecond
		p.write(`<rect class="act" x="%.1f" y="8" width="%.1f" height="%d" rx="4"/>`, p.at[name]-gapWide/2, wide+gapWide-3, headTall+rowTall*rows-12)
		p.write(`<text class="quiet" x="%.1f" y="26">%s</text>`, p.at[name], titles[name])
	}
	p.write(`<text class="quiet" x="%d" y="26">missed, doubled, off the grid</text>`, pictureWide-countsWide+12)
}

func (p *drawing) row(r *result, i int) {
	y := headTall + rowTall*i + rowTall/2
	class := ""
	if r.Peer == "onbeat" {
		class = ` class="ours"`
	}
	p.write(`<text%s x="12" y="%d">%s</text>`, class, y+4, r.Peer)
	c := r.Jobs[five].Sum
	p.write(`<text%s x="%d" y="%d">%d, %d, %d</text>`, class, pictureWide-countsWide+12, y+4, c.Missed, c.Doubled, c.OffGrid)
	p.write(`<path class="grid" d="M%d %dH%d"/>`, namesWide-6, y, pictureWide-countsWide)
	for _, m := range r.Jobs[five].Marks {
		name, from, _ := r.actOf(m.At)
		p.mark(m.Fate, p.at[name]+m.At.Sub(from).Seconds()*p.perSecond, float64(y))
	}
}

func (p *drawing) mark(fate beats.Fate, x, y float64) {
	switch fate {
	case beats.OnTime:
		p.write(`<circle class="on" cx="%.1f" cy="%.1f" r="4"/>`, x, y)
	case beats.OffGrid, beats.MadeUp:
		p.write(`<path class="off" d="M%.1f %.1fl8.5 4.5l-8.5 4.5z"/>`, x-4, y-4.5)
	case beats.Missed:
		p.write(`<circle class="missed" cx="%.1f" cy="%.1f" r="4.8"/>`, x, y)
	case beats.Doubled:
		p.write(`<path class="doubled" d="M%.1f %.1fl4.5 4.5l-4.5 4.5l-4.5 -4.5z"/>`, x, y-4.5-6)
	case beats.Down:
		p.write(`<circle class="down" cx="%.1f" cy="%.1f" r="2.5"/>`, x, y)
	}
}

func (p *drawing) legend(rows int) {
	x, y := float64(namesWide), float64(headTall+rowTall*rows+16)
	for _, one := range []struct {
		fate beats.Fate
		says string
	}{
		{beats.OnTime, "on its slot"},
		{beats.OffGrid, "off the grid, by more than a fifth of the interval"},
		{beats.Missed, "missed"},
		{beats.Doubled, "one too many"},
		{beats.Down, "nobody was there to run it: not counted"},
	} {
		drop := 0.0
		if one.fate == beats.Doubled {
			drop = 6
		}
		p.mark(one.fate, x, y+drop)
		p.write(`<text class="quiet" x="%.1f" y="%.1f">%s</text>`, x+12, y+4, one.says)
		x += 40 + 6.2*float64(len(one.says))
	}
}
