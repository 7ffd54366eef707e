package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// ts reads a time as RFC 3339, or as a date and time in UTC.
func ts(s string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	panic("not a time: " + s)
}

func mustGrid(t testing.TB, r Rule, anchor time.Time) Grid {
	t.Helper()
	g, err := r.Grid(anchor)
	if err != nil {
		t.Fatalf("Grid of %s: %v", Describe(r), err)
	}
	return g
}

func cronIn(expr, zone string) Rule { return Rule{Cron: expr, Timezone: zone} }

// local lists the slots in (from, to] as local times, with their offset.
func local(g Grid, loc *time.Location, from, to time.Time) []string {
	var got []string
	for s := range g.Between(from, to) {
		got = append(got, s.In(loc).Format("2006-01-02 15:04:05-07:00"))
	}
	return got
}

func wantField(t *testing.T, err error, field string) *FieldError {
	t.Helper()
	var fe *FieldError
	if !errors.As(err, &fe) || !errors.Is(err, ErrInvalid) {
		t.Fatalf("got error %v, want a FieldError that is ErrInvalid", err)
	}
	if fe.Field != field {
		t.Errorf("got field %q (%v), want %q", fe.Field, err, field)
	}
	if strings.ContainsAny(err.Error(), "\n\r") {
		t.Errorf("the error is not one line: %q", err)
	}
	return fe
}

// A naive is an expression made at random together with what it means, worked out
// without the package: sets of numbers, and a question asked of one date at a time.
type naive struct {
	text  string
	field [6]naiveField
}

type naiveField struct {
	text string
	set  map[int]bool
	days []func(d time.Time) bool
}

func (f *naiveField) has(v int, d time.Time) bool {
	return f.set[v] || slices.ContainsFunc(f.days, func(ok func(time.Time) bool) bool { return ok(d) })
}

// matches takes a wall-clock time dressed up as UTC.
func (n *naive) matches(w time.Time) bool {
	for i, v := range []int{w.Second(), w.Minute(), w.Hour()} {
		if !n.field[i].has(v, w) {
			return false
		}
	}
	if !n.field[4].has(int(w.Month()), w) {
		return false
	}
	dom, dow := n.field[3].has(w.Day(), w), n.field[5].has(int(w.Weekday()), w)
	if strings.HasPrefix(n.field[3].text, "*") || strings.HasPrefix(n.field[5].text, "*") {
		return dom && dow
	}
	return dom || dow
}

// shape says what a random expression may contain.
type shape struct {
	seconds, specials, busy bool
}

func randomExpr(rng *rand.Rand, s shape) *naive {
	n := &naive{}
	for i := range n.field {
		f := &cronFields[i]
		star := 0.3
		switch {
		case f.kind == kindSecond && !s.seconds:
			n.field[i] = naiveField{text: "0", set: map[int]bool{0: true}}
			continue
		case f.kind >= kindDom:
			star = 0.6
		}
		if s.busy && f.kind >= kindHour {
			star = 0.8
		}
		if rng.Float64() < star {
			n.field[i] = naiveField{text: "*", set: steps(f.min, f.top(), 1)}
			continue
		}
		n.field[i] = randomField(rng, f, s.specials)
	}
	var texts []string
	for i := range n.field {
		if i > 0 || s.seconds {
			texts = append(texts, n.field[i].text)
		}
	}
	n.text = strings.Join(texts, " ")
	return n
}

func randomField(rng *rand.Rand, f *cronField, specials bool) naiveField {
	out := naiveField{set: map[int]bool{}}
	var items []string
	for range 1 + rng.IntN(3)*rng.IntN(2) {
		if specials && f.kind == kindDom && rng.IntN(2) == 0 || specials && f.kind == kindDow && rng.IntN(2) == 0 {
			text, ok := randomSpecial(rng, f)
			items, out.days = append(items, text), append(out.days, ok)
			continue
		}
		text, set := randomItem(rng, f)
		items = append(items, text)
		for v := range set {
			out.set[v] = true
		}
	}
	out.text = strings.Join(items, ",")
	return out
}

func randomItem(rng *rand.Rand, f *cronField) (string, map[int]bool) {
	size := f.top() - f.min + 1
	lo := f.min + rng.IntN(size)
	hi := lo + rng.IntN(f.top()-lo+1)
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
		return fmt.Sprintf("*/%d", step), steps(f.min, f.top(), step)
	case 1:
		return fmt.Sprintf("%s-%s", name(lo), name(hi)), steps(lo, hi, 1)
	case 2:
		return fmt.Sprintf("%s-%s/%d", name(lo), name(hi), step), steps(lo, hi, step)
	case 3:
		return fmt.Sprintf("%d/%d", lo, step), steps(lo, f.top(), step)
	default:
		return name(lo), steps(lo, lo, 1)
	}
}

func randomSpecial(rng *rand.Rand, f *cronField) (string, func(time.Time) bool) {
	lastDay := func(d time.Time) int { return time.Date(d.Year(), d.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day() }
	// nearest asks which working day is the fewest days from the target, in the month.
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
	if f.kind == kindDow {
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

func steps(lo, hi, step int) map[int]bool {
	set := map[int]bool{}
	for v := lo; v <= hi; v += step {
		set[v] = true
	}
	return set
}
