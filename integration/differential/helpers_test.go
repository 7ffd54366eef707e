package differential

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/oracle"
	"github.com/onbeat/onbeat/schedule"
)

const day = 24 * time.Hour

// day0 is where grids begin.
var day0 = time.Unix(0, 0).UTC()

func randomInstant(rng *rand.Rand) time.Time {
	return time.UnixMilli(rng.Int64N(day0.AddDate(230, 0, 0).UnixMilli())).UTC()
}

// sixFields is the expression with its seconds.
func sixFields(n *oracle.Expr) string {
	if strings.Count(n.Text, " ") == 5 {
		return n.Text
	}
	return "0 " + n.Text
}

func isStar(f oracle.Field) bool { return strings.HasPrefix(f.Text, "*") }

// weekdays has a bit for each day of the week that is named as such; 5L and 5#1 name none.
func weekdays(n *oracle.Expr) (set uint8) {
	for d := range n.Field[5].Set {
		set |= 1 << d
	}
	return set
}

func inUTC(expr string) (schedule.Grid, error) { return schedule.Cron(expr, nil).Grid(day0) }

// days are an expression's two day fields apart, each beside a star: so that they can be joined in the way of others.
type days struct{ date, weekday schedule.Grid }

func daysOf(t *testing.T, fields []string) days {
	t.Helper()
	apart := func(i int) schedule.Grid {
		f := append([]string{}, fields...)
		f[i] = "*"
		g, err := inUTC(strings.Join(f, " "))
		if err != nil && !strings.Contains(err.Error(), "never") {
			t.Fatal(err)
		}
		return g // the zero Grid has no slots
	}
	return days{date: apart(5), weekday: apart(3)}
}

// next is the first slot after a moment by which both fields hold, or one of them. It gives up after seven years: the others
// do sooner.
func (d days) next(after time.Time, both bool) time.Time {
	x, y := d.date.Next(after), d.weekday.Next(after)
	if !both {
		if x.IsZero() || !y.IsZero() && y.Before(x) {
			return y
		}
		return x
	}
	for limit := after.AddDate(7, 0, 0); !x.Equal(y); {
		switch {
		case x.IsZero() || y.IsZero() || x.After(limit) || y.After(limit):
			return time.Time{}
		case x.Before(y):
			x = d.date.Next(y.Add(-1))
		default:
			y = d.weekday.Next(x.Add(-1))
		}
	}
	return x
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// changesWithin tells whether the clock of a zone changes in (from, to].
func changesWithin(loc *time.Location, from, to time.Time) bool {
	_, was := from.In(loc).Zone()
	for at := from; ; {
		_, end := at.In(loc).ZoneBounds()
		if end.IsZero() || end.After(to) {
			return false
		}
		if _, is := end.In(loc).Zone(); is != was {
			return true
		}
		at = end
	}
}
