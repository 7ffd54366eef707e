package schedule

import (
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // so that zones are found in a bare container too
)

// zone is a time zone as a list of spans of constant offset.
type zone struct {
	loc     *time.Location
	starts  []int64 // unix seconds; the first is always
	offsets []int32 // seconds east of UTC, one a start
}

// span is a stretch of time in which a zone's clock keeps one offset from UTC, with the offsets before and after it. All in
// seconds.
type span struct {
	start, end         int64 // [start, end)
	before, offset, to int64
}

// Spans are listed from a month before 1970 to 2500: 13 kilobytes for a zone with daylight saving, a few hundred bytes for
// one without. From 2100 on, every zone follows a yearly rule or none, and rules, like the calendar, repeat after 400
// years. So the last 400 years listed stand for all later ones.
const (
	listFrom  = -31 * daySeconds
	cycleFrom = 4102444800
	cycle     = 146097 * daySeconds
	listUntil = cycleFrom + cycle
)

// zones holds every zone that was loaded. It does not keep names that do not exist, so it cannot grow larger than the zone
// database.
var zones sync.Map // string -> *zone

func loadZone(name string) (*zone, error) {
	if z, ok := zones.Load(name); ok {
		return z.(*zone), nil
	}
	const hint = `use an IANA name such as "Asia/Seoul", or "" for UTC`
	switch {
	case name == "Local":
		return nil, invalid("timezone", name, "each machine has its own local zone", hint)
	case len(name) > 64, strings.HasPrefix(name, "right/"): // right/ counts leap seconds, and Unix time does not
		return nil, invalid("timezone", name, "unknown zone", hint)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, invalid("timezone", name, "unknown zone", hint)
	}
	z, _ := zones.LoadOrStore(name, newZone(loc))
	return z.(*zone), nil
}

func newZone(loc *time.Location) *zone {
	z := &zone{loc: loc, starts: []int64{always}}
	for at := int64(listFrom); ; {
		t := time.Unix(at, 0).In(loc)
		_, offset := t.Zone()
		switch n := len(z.offsets); {
		case n == 0:
			z.offsets = append(z.offsets, int32(offset))
		case z.offsets[n-1] != int32(offset): // else only the name changed, or nothing did
			z.starts, z.offsets = append(z.starts, at), append(z.offsets, int32(offset))
		}
		_, end := t.ZoneBounds()
		// The list goes a little beyond the cycle, so that a span at its end is complete.
		if end.IsZero() || at > listUntil+366*daySeconds {
			break
		}
		// Where a yearly rule applies, Go also puts bounds around each year, and for the last day of a leap year the end
		// lies before the day.
		if next := end.Unix(); next > at {
			at = next
		} else {
			at += daySeconds
		}
	}
	z.starts, z.offsets = slices.Clip(z.starts), slices.Clip(z.offsets)
	return z
}

// at returns the span in which the instant t lies.
func (z *zone) at(t int64) span {
	shift := int64(0)
	if t >= listUntil && z.starts[len(z.starts)-1] > cycleFrom {
		shift = (t - cycleFrom) / cycle * cycle
	}
	i, found := slices.BinarySearch(z.starts, t-shift)
	if !found {
		i--
	}
	s := span{start: z.starts[i] + shift, end: never, offset: int64(z.offsets[i])}
	s.before, s.to = s.offset, s.offset
	if i > 0 {
		s.before = int64(z.offsets[i-1])
	}
	if i+1 < len(z.starts) {
		s.end, s.to = z.starts[i+1]+shift, int64(z.offsets[i+1])
	}
	return s
}
