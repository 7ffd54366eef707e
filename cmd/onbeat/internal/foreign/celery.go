package foreign

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

var (
	beatName  = regexp.MustCompile(`(?:CELERY_?BEAT_SCHEDULE|beat_schedule)['"\]]*\s*[=:]\s*\{`)
	beatZone  = regexp.MustCompile(`(?m)^[ \t]*(?:[^#\s].*?)??\b(?:CELERY_TIMEZONE|timezone)(?:['"]\s*\]?)?\s*[=:]\s*(?:['"]([A-Za-z0-9_/+-]+)['"]|[^\s=])`)
	beatAdded = regexp.MustCompile(`\.add_periodic_task\s*\(|beat_schedule\s*(?:\[|\.update)`)
)

// Celery reads the schedule of Celery beat: the beat_schedule of a module of Python, or what dumpdata writes of django_celery_beat. The zone
// counts if the module names none; that of Celery is UTC.
func (j *Jobs) Celery(file string, data []byte, zone string) error {
	text := string(data)
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		return j.fixture(file, data, zone)
	}
	found := beatName.FindAllStringIndex(text, -1)
	schedules := make([]any, len(found))
	var settings strings.Builder // the text without the schedules, whose arguments may have a zone of their own
	from := 0
	for i, m := range found {
		p := &python{text: text, at: m[1] - 1}
		schedules[i] = p.operand()
		settings.WriteString(text[from:max(from, m[0])])
		from = max(from, p.at)
	}
	settings.WriteString(text[from:])
	zone = j.beatZone(file, settings.String(), zone)
	for i, m := range found {
		at := Place{file, 1 + strings.Count(text[:m[1]], "\n")}
		entries, ok := schedules[i].(pyDict)
		if !ok {
			j.leave(at, "the schedule is not written out", "write it as a dict of literals")
			continue
		}
		for i, e := range entries {
			at.Line = e.line
			if later := entries[i+1:].find(e.key); later != nil {
				j.note(at, fmt.Sprintf("%v: Python keeps the entry of the same name on line %d", e.key, later.line), "")
				continue
			}
			name, isText := e.key.(string)
			entry, isDict := e.value.(pyDict)
			if !isText || !isDict {
				j.leave(at, "an entry that is not written out", "write its name as a text, and the entry as a dict")
				continue
			}
			j.beat(at, name, entry, zone)
		}
	}
	for _, m := range beatAdded.FindAllStringIndex(text, -1) {
		found = append(found, m)
		at := Place{file, 1 + strings.Count(text[:m[0]], "\n")}
		j.leave(at, "an entry that Python adds: "+comment(strings.TrimSpace(text[m[0]:m[1]])), "write it in beat_schedule")
	}
	if len(found) == 0 {
		return refused("no beat_schedule in it")
	}
	return nil
}

// beatZone returns the zone that the settings name.
func (j *Jobs) beatZone(file, settings, zone string) string {
	all := beatZone.FindAllStringSubmatch(settings, -1)
	for _, m := range all {
		if m[1] != "" {
			return m[1]
		}
	}
	if len(all) > 0 {
		j.note(Place{File: file}, "the zone is not written out: crontabs are in "+zone, "name it: --timezone Europe/Berlin")
	}
	return zone
}

func (j *Jobs) beat(at Place, name string, entry pyDict, zone string) {
	typ, _ := entry.get("task")
	task, ok := typ.(string)
	if !ok {
		j.leave(at, name+": task is no text", "write out the name of the task")
		return
	}
	when, _ := entry.get("schedule")
	rule, err := ruleOf(when, zone)
	if err != nil {
		j.leave(at, name+": "+err.Error(), "")
		return
	}
	args, kwargs := any(pyList{}), any(pyDict{})
	var queue string
	for _, item := range entry {
		switch item.key {
		case "task", "schedule":
		case "args":
			args = item.value
		case "kwargs":
			kwargs = item.value
		case "options":
			options, _ := item.value.(pyDict)
			for _, o := range options {
				if text, ok := o.value.(string); ok && o.key == "queue" {
					queue = text
					continue
				}
				j.note(Place{at.File, o.line}, fmt.Sprintf("%s: option %v has no effect", name, o.key), "")
			}
		default:
			j.note(Place{at.File, item.line}, fmt.Sprintf("%s: %v has no effect", name, item.key), "")
		}
	}
	payload, err := payloadOf(args, kwargs)
	if err != nil {
		j.leave(at, name+": "+err.Error(), "write the arguments out")
		return
	}
	j.addBeat(at, name, task, queue, rule, payload)
}

// addBeat takes an entry. Celery does not retry a task unless the task asks for it, and beat sends one entry that fell due while it was away.
func (j *Jobs) addBeat(at Place, name, task, queue string, rule schedule.Rule, payload json.RawMessage) {
	rule.Missed = schedule.MissedOnce
	s := producer.Schedule{Name: name, Rule: rule, Task: task, Payload: payload, Queue: queue, Timeout: longRun, MaxAttempts: 1}
	if j.add(at, name, &s) {
		j.once(at, "a task of Celery runs in Python", "write a handler of that type, or make it a request: task http")
	}
}

func payloadOf(args, kwargs any) (json.RawMessage, error) {
	a, err := plain(args)
	if err != nil {
		return nil, err
	}
	k, err := plain(kwargs)
	if err != nil {
		return nil, err
	}
	return quoted(struct {
		Args   any `json:"args"`
		Kwargs any `json:"kwargs"`
	}{a, k}), nil
}

// plain turns a value of Python into one of JSON.
func plain(v any) (any, error) {
	switch v := v.(type) {
	case pyList:
		list := []any{}
		for _, one := range v {
			p, err := plain(one)
			if err != nil {
				return nil, err
			}
			list = append(list, p)
		}
		return list, nil
	case pyDict:
		m := map[string]any{}
		for _, item := range v {
			key, ok := item.key.(string)
			p, err := plain(item.value)
			if !ok || err != nil {
				return nil, refused(fmt.Sprintf("%v is not JSON", item.key))
			}
			m[key] = p
		}
		return m, nil
	case pyCall:
		return nil, refused(v.name + "(…) is not JSON")
	case unread:
		return nil, refused(comment(string(v)) + " is not read")
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, refused("a number that is not JSON")
		}
	}
	return v, nil // a text, a number, true, false or null
}

// ruleOf reads what stands behind schedule.
func ruleOf(v any, zone string) (schedule.Rule, error) {
	switch v := v.(type) {
	case float64:
		return every(v)
	case pyCall:
		switch v.name {
		case "timedelta":
			return every(seconds(&v))
		case "schedule":
			if len(v.args) > 0 {
				return ruleOf(v.args[0], zone)
			}
			return ruleOf(v.named["run_every"], zone)
		case "crontab":
			return crontabOf(&v, zone)
		}
		return schedule.Rule{}, refused(v.name + ": onbeat has no such rule")
	case unread:
		return schedule.Rule{}, refused("the schedule is not written out: " + comment(string(v)))
	}
	return schedule.Rule{}, refused("no schedule")
}

func every(seconds float64) (schedule.Rule, error) {
	if !(seconds >= 0.001 && seconds < 100*365*24*3600) {
		return schedule.Rule{}, refused("no interval that onbeat has")
	}
	return schedule.Rule{Every: time.Duration(seconds*1000+0.5) * time.Millisecond}, nil
}

// seconds returns those of a timedelta, or -1.
func seconds(delta *pyCall) (total float64) {
	units := []string{"days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks"}
	of := map[string]float64{"days": 86400, "seconds": 1, "microseconds": 1e-6, "milliseconds": 1e-3, "minutes": 60, "hours": 3600, "weeks": 7 * 86400}
	add := func(unit string, v any) {
		n, ok := v.(float64)
		if !ok || of[unit] == 0 {
			total = -1e300
		}
		total += n * of[unit]
	}
	for i, v := range delta.args {
		add(append(units, make([]string, len(delta.args))...)[i], v)
	}
	for unit, v := range delta.named {
		add(unit, v)
	}
	return total
}

// crontabOf makes a cron expression of a crontab of Celery, in which both days must match.
func crontabOf(c *pyCall, zone string) (schedule.Rule, error) {
	names := []string{"minute", "hour", "day_of_week", "day_of_month", "month_of_year"}
	fields := []string{"*", "*", "*", "*", "*"}
	set := func(i int, v any) bool {
		if i < 0 || i >= len(fields) {
			return false
		}
		text, ok := crontabField(v)
		fields[i] = text
		return ok
	}
	for i, v := range c.args {
		if !set(i, v) {
			return schedule.Rule{}, refused("a crontab that is not written out")
		}
	}
	for name, v := range c.named {
		if !set(slices.Index(names, name), v) {
			return schedule.Rule{}, refused("crontab: " + name + " is not read")
		}
	}
	return cronOfFields(fields[0], fields[1], fields[2], fields[3], fields[4], zone)
}

func cronOfFields(minute, hour, weekday, day, month, zone string) (schedule.Rule, error) {
	weekday, day, err := both(weekday, day)
	if err != nil {
		return schedule.Rule{}, err
	}
	return asCron("", strings.Join([]string{minute, hour, day, month, weekday}, " "), zone).Rule, nil
}

var longDay = regexp.MustCompile(`(?i)\b(sun|mon|tue|wed|thu|fri|sat)[a-z]+`)

func crontabField(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		text := longDay.ReplaceAllString(strings.ReplaceAll(v, " ", ""), "$1")
		return text, text != ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case pyList:
		var list []string
		for _, one := range v {
			text, ok := crontabField(one)
			if !ok {
				return "", false
			}
			list = append(list, text)
		}
		return strings.Join(list, ","), len(list) > 0
	}
	return "", false
}
