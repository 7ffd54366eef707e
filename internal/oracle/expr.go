// Package oracle is what the tests of schedules compare with: random cron expressions with their meaning, and clock changes
// that have broken schedulers. It shares no code with package schedule, so that a mistake there is not repeated here.
package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Expr is a random expression with its meaning: sets of numbers, and questions about one date at a time.
type Expr struct {
	Text  string
	Field [6]Field // second, minute, hour, day of month, month, day of week
}

// Field is one field of an [Expr].
type Field struct {
	Text string
	Set  map[int]bool
	days []func(d time.Time) bool
}

func (f *Field) has(v int, d time.Time) bool {
	return f.Set[v] || slices.ContainsFunc(f.days, func(ok func(time.Time) bool) bool { return ok(d) })
}

// Matches reports whether the expression has a slot at w, a wall-clock time written as if it were UTC.
func (e *Expr) Matches(w time.Time) bool {
	for i, v := range []int{w.Second(), w.Minute(), w.Hour()} {
		if !e.Field[i].has(v, w) {
			return false
		}
	}
	if !e.Field[month].has(int(w.Month()), w) {
		return false
	}
	onDate, onWeekday := e.Field[dom].has(w.Day(), w), e.Field[dow].has(int(w.Weekday()), w)
	if strings.HasPrefix(e.Field[dom].Text, "*") || strings.HasPrefix(e.Field[dow].Text, "*") {
		return onDate && onWeekday
	}
	return onDate || onWeekday
}

// Shape says what a random expression may contain: a field of seconds, specials (L, W and #), and days of which most match.
type Shape struct {
	Seconds, Specials, Busy bool
}

// span says what one field of an expression may hold.
type span struct {
	min, max int    // of the last field up to Saturday: 7 is a second number for Sunday
	names    string // three letters a value, from min on
}

const (
	second = iota
	minute
	hour
	dom
	month
	dow
)

var spans = [6]span{
	second: {0, 59, ""}, minute: {0, 59, ""}, hour: {0, 23, ""}, dom: {1, 31, ""},
	month: {1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"}, dow: {0, 6, "SUNMONTUEWEDTHUFRISAT"},
}

// Random makes a random expression of a shape.
func Random(rng *rand.Rand, s Shape) *Expr {
	e := &Expr{}
	for i := range e.Field {
		f := &spans[i]
		star := 0.3
		switch {
		case i == second && !s.Seconds:
			e.Field[i] = Field{Text: "0", Set: map[int]bool{0: true}}
			continue
		case i >= dom:
			star = 0.6
		}
		if s.Busy && i >= hour {
			star = 0.8
		}
		if rng.Float64() < star {
			e.Field[i] = Field{Text: "*", Set: Steps(f.min, f.max, 1)}
			continue
		}
		e.Field[i] = randomField(rng, i, s.Specials)
	}
	var texts []string
	for i := range e.Field {
		if i > second || s.Seconds {
			texts = append(texts, e.Field[i].Text)
		}
	}
	e.Text = strings.Join(texts, " ")
	return e
}

func randomField(rng *rand.Rand, i int, specials bool) Field {
	out := Field{Set: map[int]bool{}}
	var items []string
	for range 1 + rng.IntN(3)*rng.IntN(2) {
		if specials && i == dom && rng.IntN(2) == 0 || specials && i == dow && rng.IntN(2) == 0 {
			text, ok := randomSpecial(rng, i)
			items, out.days = append(items, text), append(out.days, ok)
			continue
		}
		text, set := randomItem(rng, &spans[i])
		items = append(items, text)
		for v := range set {
			out.Set[v] = true
		}
	}
	out.Text = strings.Join(items, ",")
	return out
}

func randomItem(rng *rand.Rand, f *span) (string, map[int]bool) {
	size := f.max - f.min + 1
	lo := f.min + rng.IntN(size)
	hi := lo + rng.IntN(f.max-lo+1)
	name := func(v int) string {
		if f.names != "" && rng.IntN(2) == 0 {
			v -= f.min
			if s := f.names[3*v : 3*v+3]; rng.IntN(2) == 0 {
				return s
			}
			return strings.ToLower(f.names[3*v : 3*v+3])
		}
		return fmt.Sprint(v)
	}
	switch step := 1 + rng.IntN(size); rng.IntN(6) {
	case 0:
		return fmt.Sprintf("*/%d", step), Steps(f.min, f.max, step)
	case 1:
		return fmt.Sprintf("%s-%s", name(lo), name(hi)), Steps(lo, hi, 1)
	case 2:
		return fmt.Sprintf("%s-%s/%d", name(lo), name(hi), step), Steps(lo, hi, step)
	case 3:
		return fmt.Sprintf("%d/%d", lo, step), Steps(lo, f.max, step)
	default:
		return name(lo), Steps(lo, lo, 1)
	}
}

func randomSpecial(rng *rand.Rand, i int) (string, func(time.Time) bool) {
	lastDay := func(d time.Time) int { return time.Date(d.Year(), d.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day() }
	// nearest returns the working day in the month that is the fewest days from the target.
	nearest := func(d time.Time, target int) int {
		for _, delta := range []int{0, -1, 1, -2, 2} {
			day := target + delta
			if wd := time.Date(d.Year(), d.Month(), day, 0, 0, 0, 0, time.UTC).Weekday(); day >= 1 &&
				day <= lastDay(d) && wd != time.Saturday && wd != time.Sunday {
				return day
			}
		}
		panic("no working day near")
	}
	if i == dow {
		wd, n := rng.IntN(7), 1+rng.IntN(5)
		if rng.IntN(2) == 0 {
			return fmt.Sprintf("%dL", wd), func(d time.Time) bool {
				return int(d.Weekday()) == wd && d.AddDate(0, 0, 7).Month() != d.Month()
			}
		}
		return fmt.Sprintf("%d#%d", wd, n), func(d time.Time) bool {
			return int(d.Weekday()) == wd && (d.Day()+6)/7 == n
		}
	}
	switch k := 1 + rng.IntN(30); rng.IntN(4) {
	case 0:
		return "L", func(d time.Time) bool { return d.Day() == lastDay(d) }
	case 1:
		return fmt.Sprintf("L-%d", k), func(d time.Time) bool { return d.Day() == lastDay(d)-k }
	case 2:
		return "LW", func(d time.Time) bool { return d.Day() == nearest(d, lastDay(d)) }
	default:
		return fmt.Sprintf("%dW", k), func(d time.Time) bool { return k <= lastDay(d) && d.Day() == nearest(d, k) }
	}
}

// Steps returns the set of lo, lo+step and so on, up to hi.
func Steps(lo, hi, step int) map[int]bool {
	set := map[int]bool{}
	for v := lo; v <= hi; v += step {
		set[v] = true
	}
	return set
}
