package schedule

import (
	"math/bits"
	"time"
)

// calendar is a cron expression as bits. It counts in wall-clock seconds: it takes the local time of
// the zone as if it were UTC. It is small and comparable, so equal expressions share one copy.
type calendar struct {
	second, minute uint64 // bits 0-59
	nth            uint64 // bit (n-1)*7+weekday: MON#2
	hour           uint32 // bits 0-23
	dom            uint32 // bits 1-31
	fromLast       uint32 // bit k: L-k
	nearest        uint32 // bits 1-31: 15W
	month          uint16 // bits 1-12
	dow            uint8  // bits 0-6, Sunday first
	lastDow        uint8  // bits 0-6: 5L
	lastWeekday    bool   // LW
	domStar        bool   // the field begins with * or ?
	dowStar        bool
}

const (
	allHours   = 1<<24 - 1
	daySeconds = 24 * 60 * 60

	// never and always lie beyond every wall-clock second, but far enough from the ends of int64 that offsets can be added
	// to them.
	never  = int64(1) << 60
	always = -never
)

// days returns the matching days of a month, as bits 1-31. The month has n days and begins on the day first, counted from
// 1970-01-01.
func (c *calendar) days(first int64, n int) uint32 {
	month := uint32(1)<<(n+1) - 2
	begins := int((first%7 + 11) % 7) // weekday of the 1st; day 0 was a Thursday

	dom := c.dom
	for set := c.fromLast; set != 0; set &= set - 1 {
		if d := n - bits.TrailingZeros32(set); d > 0 {
			dom |= 1 << d
		}
	}
	for set := c.nearest & month; set != 0; set &= set - 1 {
		dom |= 1 << nearestWeekday(bits.TrailingZeros32(set), begins, n)
	}
	if c.lastWeekday {
		dom |= 1 << nearestWeekday(n, begins, n)
	}

	// Rotate the week so that bit 0 is the weekday of the 1st, then repeat it.
	week := uint64(c.dow)
	week = (week>>begins | week<<(7-begins)) & 0x7f
	dow := uint32(week * (1 | 1<<7 | 1<<14 | 1<<21 | 1<<28) << 1)
	for set := c.nth; set != 0; set &= set - 1 {
		bit := bits.TrailingZeros64(set)
		if d := 1 + (bit%7-begins+7)%7 + bit/7*7; d <= n {
			dow |= 1 << d
		}
	}
	for set := c.lastDow; set != 0; set &= set - 1 {
		last := (begins + n - 1) % 7
		dow |= 1 << (n - (last-bits.TrailingZeros8(set)+7)%7)
	}

	if c.domStar || c.dowStar {
		return dom & dow & month
	}
	return (dom | dow) & month
}

// nearestWeekday returns the day from Monday to Friday nearest to d, within the month of n days that begins on weekday
// begins.
func nearestWeekday(d, begins, n int) int {
	switch weekday := time.Weekday((begins + d - 1) % 7); {
	case weekday == time.Saturday && d > 1:
		return d - 1
	case weekday == time.Saturday:
		return d + 2
	case weekday == time.Sunday && d < n:
		return d + 1
	case weekday == time.Sunday:
		return d - 2
	}
	return d
}

// next returns the first match at w or later, or never if there is none before the year 10001.
func (c *calendar) next(w int64) int64 {
	m := monthAt(w)
	set := c.in(m) &^ (1<<m.day - 1)
	if set>>m.day&1 == 1 {
		if s, ok := c.nextSecond(m.second); ok {
			return m.at(m.day, s)
		}
		set &^= 1 << m.day
	}
	for set == 0 {
		if m.forward(); m.year > 10000 {
			return never
		}
		set = c.in(m)
	}
	return m.at(bits.TrailingZeros32(set), c.firstSecond())
}

// prev returns the last match at w or earlier, or always if there is none after 1968.
func (c *calendar) prev(w int64) int64 {
	m := monthAt(w)
	set := c.in(m) & (1<<(m.day+1) - 1)
	if set>>m.day&1 == 1 {
		if s, ok := c.prevSecond(m.second); ok {
			return m.at(m.day, s)
		}
		set &^= 1 << m.day
	}
	for set == 0 {
		if m.back(); m.year < 1969 {
			return always
		}
		set = c.in(m)
	}
	return m.at(bits.Len32(set)-1, c.lastSecond())
}

// count returns how many matches lie in [lo, hi).
func (c *calendar) count(lo, hi int64) int64 {
	if lo >= hi {
		return 0
	}
	from, to := monthAt(lo), monthAt(hi)
	total := int64(0)
	if c.in(from)>>from.day&1 == 1 {
		total -= c.secondsBefore(from.second)
	}
	if c.in(to)>>to.day&1 == 1 {
		total += c.secondsBefore(to.second)
	}
	dates := -bits.OnesCount32(c.in(from) & (1<<from.day - 1))
	for m := from; m.first < to.first; m.forward() {
		dates += bits.OnesCount32(c.in(m))
	}
	dates += bits.OnesCount32(c.in(to) & (1<<to.day - 1))
	return total + int64(dates)*c.secondsBefore(daySeconds)
}

// matches reports whether w itself matches.
func (c *calendar) matches(w int64) bool { return c.next(w) == w }

// in returns the matching days of m.
func (c *calendar) in(m month) uint32 {
	if c.month>>m.month&1 == 0 {
		return 0
	}
	return c.days(m.first, m.length)
}

// nextSecond returns the first match of the time of day at s or later.
func (c *calendar) nextSecond(s int) (int, bool) {
	h, m := s/3600, s/60%60
	if c.hour>>h&1 == 1 {
		if c.minute>>m&1 == 1 {
			if set := c.second >> (s % 60); set != 0 {
				return s + bits.TrailingZeros64(set), true
			}
		}
		if set := c.minute >> (m + 1); set != 0 {
			m += 1 + bits.TrailingZeros64(set)
			return h*3600 + m*60 + bits.TrailingZeros64(c.second), true
		}
	}
	set := c.hour >> (h + 1)
	if set == 0 {
		return 0, false
	}
	h += 1 + bits.TrailingZeros32(set)
	return h*3600 + bits.TrailingZeros64(c.minute)*60 + bits.TrailingZeros64(c.second), true
}

// prevSecond returns the last match of the time of day at s or earlier.
func (c *calendar) prevSecond(s int) (int, bool) {
	h, m := s/3600, s/60%60
	if c.hour>>h&1 == 1 {
		if c.minute>>m&1 == 1 {
			if set := c.second & (2<<(s%60) - 1); set != 0 {
				return h*3600 + m*60 + bits.Len64(set) - 1, true
			}
		}
		if set := c.minute & (1<<m - 1); set != 0 {
			return h*3600 + (bits.Len64(set)-1)*60 + bits.Len64(c.second) - 1, true
		}
	}
	set := c.hour & (1<<h - 1)
	if set == 0 {
		return 0, false
	}
	return (bits.Len32(set)-1)*3600 + (bits.Len64(c.minute)-1)*60 + bits.Len64(c.second) - 1, true
}

func (c *calendar) firstSecond() int {
	s, _ := c.nextSecond(0)
	return s
}

func (c *calendar) lastSecond() int {
	s, _ := c.prevSecond(daySeconds - 1)
	return s
}

// secondsBefore counts the matches of the time of day before s.
func (c *calendar) secondsBefore(s int) int64 {
	h, m := s/3600, s/60%60
	perMinute := bits.OnesCount64(c.second)
	perHour := bits.OnesCount64(c.minute) * perMinute
	n := bits.OnesCount32(c.hour&(1<<h-1)) * perHour
	if c.hour>>h&1 == 1 {
		n += bits.OnesCount64(c.minute&(1<<m-1)) * perMinute
		if c.minute>>m&1 == 1 {
			n += bits.OnesCount64(c.second & (1<<(s%60) - 1))
		}
	}
	return int64(n)
}

// month is a month, with a day and a second in it.
type month struct {
	first       int64 // day number of the 1st, counted from 1970-01-01
	year        int
	month       time.Month
	length      int
	day, second int
}

func monthAt(w int64) month {
	y, m, d := time.Unix(w, 0).UTC().Date()
	number := floorDiv(w, daySeconds)
	return month{
		first: number - int64(d-1), year: y, month: m, length: monthLength(y, m),
		day: d, second: int(w - number*daySeconds),
	}
}

// at returns the wall-clock second at a day of the month and a time of day.
func (m *month) at(day, second int) int64 {
	return (m.first+int64(day-1))*daySeconds + int64(second)
}

func (m *month) forward() {
	m.first += int64(m.length)
	if m.month++; m.month > time.December {
		m.year, m.month = m.year+1, time.January
	}
	m.length = monthLength(m.year, m.month)
}

func (m *month) back() {
	if m.month--; m.month < time.January {
		m.year, m.month = m.year-1, time.December
	}
	m.length = monthLength(m.year, m.month)
	m.first -= int64(m.length)
}

func monthLength(y int, m time.Month) int {
	if m == time.February {
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 29
		}
		return 28
	}
	// 31 for the odd months up to July and the even ones from August.
	return 30 + int(m+m>>3)&1
}

// floorDiv divides and rounds down, also for a negative a. b is positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
