package foreign

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// namedTimes are the calendar events of systemd.time(7) that have a name.
var namedTimes = map[string]string{
	"minutely": "*-*-* *:*:00", "hourly": "*-*-* *:00:00", "daily": "*-*-* 00:00:00", "monthly": "*-*-01 00:00:00", "weekly": "Mon *-*-* 00:00:00",
	"yearly": "*-01-01 00:00:00", "annually": "*-01-01 00:00:00", "quarterly": "*-01,04,07,10-01 00:00:00", "semiannually": "*-01,07-01 00:00:00",
}

// refused is why a calendar event has no cron expression.
type refused string

func (r refused) Error() string { return string(r) }

// cronOf turns a calendar event of systemd into a cron expression and a zone, which is "" if the event names none.
func cronOf(event string) (cron, zone string, err error) {
	words := strings.Fields(event)
	if n := len(words); n > 1 {
		if last := words[n-1]; last == "UTC" || strings.Contains(last, "/") && !strings.ContainsAny(last, ":*") && !startsWithDigit(last) {
			zone, words = last, words[:n-1]
		}
	}
	if len(words) == 1 {
		if named := namedTimes[strings.ToLower(words[0])]; named != "" {
			words = strings.Fields(named)
		}
	}
	days, date, clock := "*", "*-*-*", "00:00:00"
	for i, word := range words {
		switch {
		case strings.Contains(word, ":"):
			clock = word
		case i == 0 && !startsWithDigit(word) && !strings.HasPrefix(word, "*"):
			if days, err = daysOf(word); err != nil {
				return "", "", err
			}
		case strings.Contains(word, "-") || strings.Contains(word, "~"):
			date = word
		default:
			return "", "", refused("a part that onbeat does not read: " + word)
		}
	}
	day, month, err := dateOf(date)
	if err != nil {
		return "", "", err
	}
	parts := strings.Split(clock, ":")
	if len(parts) == 2 {
		parts = append(parts, "00")
	}
	if len(parts) != 3 {
		return "", "", refused("a time that onbeat does not read: " + clock)
	}
	var fields []string
	for i, limit := range []int{23, 59, 59} {
		f, err := fieldOf(parts[i], 0, limit)
		if err != nil {
			return "", "", err
		}
		fields = append(fields, f)
	}
	if days, day, err = both(days, day); err != nil {
		return "", "", err
	}
	cron = strings.Join([]string{fields[1], fields[0], day, month, days}, " ")
	if fields[2] != "0" {
		cron = fields[2] + " " + cron
	}
	return cron, zone, nil
}

func startsWithDigit(word string) bool { return word != "" && word[0] >= '0' && word[0] <= '9' }

// both joins days of the week and of the month. systemd wants both to match, and cron either. Cron has a form for a week of the month.
func both(days, day string) (string, string, error) {
	if days == "*" || day == "*" {
		return days, day, nil
	}
	if weeks := []string{"1-7", "8-14", "15-21", "22-28"}; slices.Contains(weeks, day) && !strings.ContainsAny(days, ",-") {
		return fmt.Sprintf("%s#%d", days, slices.Index(weeks, day)+1), "*", nil
	}
	return "", "", refused("days of the week and of the month, where both must match: cron takes either")
}

var week = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}

func daysOf(text string) (string, error) {
	var list []string
	for part := range strings.SplitSeq(strings.TrimSuffix(text, ","), ",") {
		from, to, isRange := strings.Cut(strings.ReplaceAll(part, "-", ".."), "..")
		first, err := dayOf(from)
		if err != nil {
			return "", err
		}
		if !isRange {
			list = append(list, week[first])
			continue
		}
		last, err := dayOf(to)
		if err != nil {
			return "", err
		}
		if (first+6)%7 > (last+6)%7 { // the week of systemd begins on Monday
			return "", refused("days that run backwards: " + part)
		}
		list = append(list, week[first]+"-"+week[last])
	}
	return strings.Join(list, ","), nil
}

func dayOf(text string) (int, error) {
	for i, name := range []time.Weekday{0, 1, 2, 3, 4, 5, 6} {
		if long := strings.ToLower(name.String()); len(text) >= 3 && strings.HasPrefix(long, strings.ToLower(text)) {
			return i, nil
		}
	}
	return 0, refused("a day that onbeat does not read: " + text)
}

func dateOf(text string) (day, month string, err error) {
	if strings.Contains(text, "~") {
		if text, ok := strings.CutSuffix(text, "~01"); ok && strings.Count(text, "-") <= 1 {
			text = strings.TrimPrefix(text, "*-")
			month, err = fieldOf(text, 1, 12)
			return "L", month, err
		}
		return "", "", refused("days from the end of a month: " + text)
	}
	parts := strings.Split(text, "-")
	if len(parts) == 3 {
		if parts[0] != "*" {
			return "", "", refused("years: " + parts[0])
		}
		parts = parts[1:]
	}
	if len(parts) != 2 {
		return "", "", refused("a date that onbeat does not read: " + text)
	}
	if month, err = fieldOf(parts[0], 1, 12); err != nil {
		return "", "", err
	}
	day, err = fieldOf(parts[1], 1, 31)
	return day, month, err
}

var calendarPart = regexp.MustCompile(`^(\*|\d+)(?:\.\.(\d+))?(?:/(\d+))?$`)

// fieldOf turns a component, such as 4,5 or 1..7 or 0/15, into a field of cron.
func fieldOf(text string, low, high int) (string, error) {
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		m := calendarPart.FindStringSubmatch(strings.TrimSuffix(part, ".000000"))
		if m == nil {
			return "", refused("a value that onbeat does not read: " + part)
		}
		field := m[1]
		if field != "*" {
			field = trimZeros(field)
		}
		if m[2] != "" {
			field += "-" + trimZeros(m[2])
		}
		if m[3] != "" {
			step, err := strconv.Atoi(m[3])
			if err != nil || step == 0 {
				return "", refused("a step that onbeat does not read: " + part)
			}
			if step > high-low+1 { // only the first value is left
				field, _, _ = strings.Cut(strings.Replace(field, "*", strconv.Itoa(low), 1), "-")
			} else if step > 1 {
				if field == strconv.Itoa(low) {
					field = "*"
				}
				field += "/" + strconv.Itoa(step)
			} else if m[2] == "" && field != "*" {
				field += "-" + strconv.Itoa(high)
			}
		}
		list = append(list, field)
	}
	return strings.Join(list, ","), nil
}

func trimZeros(number string) string {
	if number = strings.TrimLeft(number, "0"); number == "" {
		return "0"
	}
	return number
}

// spanUnits are the units of a time span of systemd.
var spanUnits = map[string]time.Duration{
	"usec": time.Microsecond, "us": time.Microsecond, "msec": time.Millisecond, "ms": time.Millisecond,
	"": time.Second, "s": time.Second, "sec": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour, "w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour, "weeks": 7 * 24 * time.Hour,
}

var spanPart = regexp.MustCompile(`^\s*(\d{1,9})\s*([a-z]*)`)

// spanOf reads a time span such as 1h 30min or 90.
func spanOf(text string) (total time.Duration, ok bool) {
	for rest := text; strings.TrimSpace(rest) != ""; {
		m := spanPart.FindStringSubmatch(rest)
		if m == nil {
			return 0, false
		}
		unit, known := spanUnits[m[2]]
		n, err := strconv.Atoi(m[1])
		if !known || err != nil || total > 50*365*24*time.Hour || time.Duration(n) > 100*365*24*time.Hour/unit {
			return 0, false
		}
		total, rest = total+time.Duration(n)*unit, rest[len(m[0]):]
	}
	return total, total > 0
}
