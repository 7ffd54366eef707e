package schedule

import (
	"fmt"
	"strings"
)

// cronField describes what one field of an expression may hold.
type cronField struct {
	name     string
	min, max int
	names    string // three letters a value, from min on
	kind     fieldKind
}

type fieldKind int

const (
	kindSecond fieldKind = iota
	kindMinute
	kindHour
	kindDom
	kindMonth
	kindDow
)

const (
	monthNames = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"
	dayNames   = "SUNMONTUEWEDTHUFRISAT"
)

var cronFields = [6]cronField{
	{"second", 0, 59, "", kindSecond},
	{"minute", 0, 59, "", kindMinute},
	{"hour", 0, 23, "", kindHour},
	{"day of month", 1, 31, "", kindDom},
	{"month", 1, 12, monthNames, kindMonth},
	{"day of week", 0, 7, dayNames, kindDow},
}

// parse reads a field, which is a list of items, into c.
func (f *cronField) parse(c *calendar, text string) error {
	var set uint64
	rest, more := text, true
	for more {
		var item string
		item, rest, more = strings.Cut(rest, ",")
		got, special, err := f.special(c, text, item)
		if !special && err == nil {
			got, err = f.span(text, item)
		}
		if err != nil {
			return err
		}
		set |= got
	}
	switch f.kind {
	case kindSecond:
		c.second = set
	case kindMinute:
		c.minute = set
	case kindHour:
		c.hour = uint32(set)
	case kindDom:
		c.dom = uint32(set)
	case kindMonth:
		c.month = uint16(set)
	case kindDow:
		c.dow = uint8(set&0x7f | set>>7) // 7 is Sunday too
	}
	return nil
}

// span reads an item: *, a value, a range, or either with a step.
func (f *cronField) span(text, item string) (uint64, error) {
	body, stepText, stepped := strings.Cut(item, "/")
	lo, hi, step := f.min, f.top(), 1
	if body != "*" {
		from, to, ranged := strings.Cut(body, "-")
		var err error
		if lo, err = f.value(text, from); err != nil {
			return 0, err
		}
		switch {
		case ranged:
			if hi, err = f.value(text, to); err != nil {
				return 0, err
			}
			if f.kind == kindDow && hi == 0 && lo > 0 {
				hi = 7 // a range may end on Sunday: FRI-SUN
			}
		case stepped: // 5/10 is 5-59/10
			hi = max(lo, hi)
		default:
			hi = lo
		}
	}
	if lo > hi {
		wrapped := f.join(f.min, hi)
		if lo <= f.top() { // else it begins on Sunday
			wrapped = f.join(lo, f.top()) + "," + wrapped
		}
		return 0, f.fail(text, fmt.Sprintf("the range %q runs backwards", clip(body)), "if it is meant to wrap around, write "+wrapped)
	}
	if stepped {
		size := f.top() - f.min + 1
		n, length := digits(stepText)
		if length == 0 || length != len(stepText) {
			return 0, f.fail(text, fmt.Sprintf("the step %q is not a number", clip(stepText)), "write a step such as */5")
		}
		if length > 4 || n < 1 || n > uint64(size) {
			return 0, f.fail(text, fmt.Sprintf("step %s out of range 1-%d", clip(stepText), size),
				"a step starts again with each field; for a longer interval use every")
		}
		step = int(n)
	}
	var set uint64
	for v := lo; v <= hi; v += step {
		set |= 1 << v
	}
	return set, nil
}

// special reads the items that only the day fields have, into c. It returns false for any other item.
func (f *cronField) special(c *calendar, text, item string) (set uint64, ok bool, err error) {
	switch {
	case item == "?":
		if f.kind != kindDom && f.kind != kindDow {
			return 0, true, f.fail(text, "? is for day of month and day of week only", "use *")
		}
		if text != "?" {
			return 0, true, f.fail(text, "? cannot be part of a list", "remove it, or write ? alone")
		}
		return 1<<(f.max+1) - 1<<f.min, true, nil
	case f.kind == kindDom:
		ok, err = f.specialDom(c, text, item)
	case f.kind == kindDow:
		ok, err = f.specialDow(c, text, item)
	}
	return 0, ok, err
}

func (f *cronField) specialDom(c *calendar, text, item string) (bool, error) {
	if item == "" {
		return false, nil
	}
	if item[0]|0x20 == 'l' {
		switch after := item[1:]; {
		case after == "":
			c.fromLast |= 1
			return true, nil
		case strings.EqualFold(after, "W"):
			c.lastWeekday = true
			return true, nil
		case after[0] == '-':
			n, length := digits(after[1:])
			if length == 0 || length > 4 || length != len(after)-1 || n > 30 {
				return true, f.fail(text, "the number of days before the last is out of range 0-30", "L-3 is the third day before the last")
			}
			c.fromLast |= 1 << n
			return true, nil
		}
		return true, f.fail(text, "unknown use of L", "use L, L-3 or LW")
	}
	if last := len(item) - 1; item[last]|0x20 == 'w' {
		v, err := f.value(text, item[:last])
		if err != nil {
			return true, err
		}
		c.nearest |= 1 << v
		return true, nil
	}
	return false, nil
}

func (f *cronField) specialDow(c *calendar, text, item string) (bool, error) {
	if day, nth, ok := strings.Cut(item, "#"); ok {
		v, err := f.value(text, day)
		if err != nil {
			return true, err
		}
		n, length := digits(nth)
		if length == 0 || length > 4 || length != len(nth) || n < 1 || n > 5 {
			return true, f.fail(text, fmt.Sprintf("occurrence %q out of range 1-5", clip(nth)), "MON#2 is the second Monday of the month, MONL the last")
		}
		c.nth |= 1 << (int(n-1)*7 + v%7)
		return true, nil
	}
	if last := len(item) - 1; last >= 0 && item[last]|0x20 == 'l' {
		if last == 0 {
			return true, f.fail(text, "L needs a day of the week", "5L or FRIL is the last Friday of the month; for Saturday write SAT")
		}
		v, err := f.value(text, item[:last])
		if err != nil {
			return true, err
		}
		c.lastDow |= 1 << (v % 7)
		return true, nil
	}
	return false, nil
}

// value reads a number or a name.
func (f *cronField) value(text, s string) (int, error) {
	n, length := digits(s)
	switch {
	case s == "":
		return 0, f.fail(text, "a value is missing", f.rangeHint())
	case length == len(s):
		if length > 4 || n < uint64(f.min) || n > uint64(f.max) {
			return 0, f.fail(text, f.outOfRange(text, s), f.nameHint())
		}
		return int(n), nil
	case len(s) == 3:
		for i := 0; i < len(f.names); i += 3 {
			if strings.EqualFold(s, f.names[i:i+3]) {
				return f.min + i/3, nil
			}
		}
	}
	return 0, f.fail(text, fmt.Sprintf("%q is not a value", clip(s)), f.rangeHint())
}

func (f *cronField) outOfRange(text, s string) string {
	if text == s {
		return fmt.Sprintf("out of range %d-%d", f.min, f.max)
	}
	return fmt.Sprintf("%s is out of range %d-%d", clip(s), f.min, f.max)
}

// top is the last value that * reaches. For days of the week that is 6, because 7 is a second number for Sunday.
func (f *cronField) top() int {
	if f.kind == kindDow {
		return 6
	}
	return f.max
}

// join writes a range for a hint, or a single value if the range has only one.
func (f *cronField) join(lo, hi int) string {
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d-%d", lo, hi)
}

func (f *cronField) rangeHint() string {
	hint := fmt.Sprintf("use %d-%d", f.min, f.max)
	if f.names != "" {
		hint += ", or " + f.names[:3] + "-" + f.names[len(f.names)-3:]
	}
	return hint
}

func (f *cronField) nameHint() string {
	switch f.kind {
	case kindMonth:
		return "1 is January"
	case kindDow:
		return "0 and 7 are Sunday"
	}
	return ""
}

func (f *cronField) fail(text, reason, hint string) error {
	return invalid("cron "+f.name, text, reason, hint)
}
