package schedule

import (
	"fmt"
	"strings"
)

// maxCron bounds the length of an expression. One that lists every second, minute, hour, day, month and weekday by number
// has about 550 characters.
const maxCron = 1024

const cronHint = `use five fields: minute hour day-of-month month day-of-week, such as "0 2 * * MON-FRI", or six with seconds first`

// parseCron compiles an expression. It allocates nothing unless it fails.
func parseCron(expr string) (calendar, error) {
	var c calendar
	if len(expr) > maxCron {
		return c, invalid("cron", expr, fmt.Sprintf("longer than %d characters", maxCron), cronHint)
	}
	s := strings.TrimSpace(expr)
	switch {
	case s == "":
		return c, invalid("cron", expr, "empty", cronHint)
	case s[0] == '@':
		var err error
		if s, err = expandMacro(s); err != nil {
			return c, err
		}
	case hasPrefixFold(s, "TZ=") || hasPrefixFold(s, "CRON_TZ="):
		return c, invalid("cron", expr, "the expression cannot hold a time zone", "use the field timezone")
	}

	var text [6]string
	n := 0
	for f := range strings.FieldsSeq(s) {
		if n < len(text) {
			text[n] = f
		}
		n++
	}
	switch n {
	case 5:
		text = [6]string{"0", text[0], text[1], text[2], text[3], text[4]}
	case 6:
	case 7:
		return c, invalid("cron", expr, "has 7 fields", "a year field is not supported: use start and until; "+cronHint)
	default:
		return c, invalid("cron", expr, fmt.Sprintf("has %d fields, and needs 5 or 6", n), cronHint)
	}
	for i := range text {
		if err := cronFields[i].parse(&c, text[i]); err != nil {
			return c, err
		}
	}
	c.domStar, c.dowStar = isStar(text[3]), isStar(text[5])
	if !c.possible() {
		return c, impossible(&c, text)
	}
	return c, nil
}

// isStar decides how the two day fields combine. Like Vixie's cron, it looks only at the first character, so */2 counts as
// a star.
func isStar(text string) bool { return text[0] == '*' || text[0] == '?' }

// possible reports whether any date matches at all. The calendar repeats after 400 years, so the last 400 that next looks
// at stand for all.
func (c *calendar) possible() bool {
	const year9600 = 240779520000
	return c.next(year9600) != never
}

func impossible(c *calendar, text [6]string) error {
	reason := fmt.Sprintf("no month %q has such a day", text[4])
	if text[4] == "*" {
		reason = "no month has such a day"
	}
	if c.dow != 1<<7-1 {
		reason += fmt.Sprintf(" on day of week %q", text[5])
	}
	return invalid("cron day of month", text[3], reason, "it would never run")
}

func expandMacro(s string) (string, error) {
	name, _, more := strings.Cut(s, " ")
	expr := ""
	switch strings.ToLower(name) {
	case "@yearly", "@annually":
		expr = "0 0 1 1 *"
	case "@monthly":
		expr = "0 0 1 * *"
	case "@weekly":
		expr = "0 0 * * 0"
	case "@daily", "@midnight":
		expr = "0 0 * * *"
	case "@hourly":
		expr = "0 * * * *"
	case "@every":
		return "", invalid("cron", s, "an interval is not a cron expression", "use the field every, such as every: 5m")
	case "@reboot":
		return "", invalid("cron", s, "a restart is not a time", "schedules do not depend on when a process starts")
	}
	if expr == "" || more {
		return "", invalid("cron", s, "unknown shorthand", "use @yearly, @monthly, @weekly, @daily or @hourly")
	}
	return expr, nil
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
