package foreign

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/onbeat/onbeat/schedule"
)

// row is an object of a fixture of Django, as dumpdata writes it.
type row struct {
	Model  string          `json:"model"`
	PK     json.RawMessage `json:"pk"`
	Fields json.RawMessage `json:"fields"`
}

// periodicTask has the fields of django_celery_beat.periodictask. An entry has one of the rules.
type periodicTask struct {
	Name, Task    string
	Args, Kwargs  string // JSON
	Queue         *string
	Enabled       *bool
	OneOff        bool   `json:"one_off"`
	StartTime     string `json:"start_time"`
	Expires       any
	ExpireSeconds any `json:"expire_seconds"`
	Priority      any
	Interval      json.RawMessage
	Crontab       json.RawMessage
	Solar         json.RawMessage
	Clocked       json.RawMessage
}

type (
	intervalRow struct {
		Every  float64
		Period string
	}
	crontabRow struct {
		Minute, Hour, Timezone string
		Weekday                string `json:"day_of_week"`
		Day                    string `json:"day_of_month"`
		Month                  string `json:"month_of_year"`
	}
)

const djangoModel = "django_celery_beat."

func (j *Jobs) fixture(file string, data []byte, zone string) error {
	var rows []json.RawMessage
	if err := json.Unmarshal(data, &rows); err != nil {
		return refused("no JSON that dumpdata writes")
	}
	rules := map[string]json.RawMessage{} // by model and key
	var tasks []struct {
		at   Place
		task periodicTask
	}
	from := 0
	for _, text := range rows {
		from += bytes.Index(data[from:], text)
		at := Place{file, 1 + bytes.Count(data[:from], []byte("\n"))}
		from += len(text)
		var r row
		if json.Unmarshal(text, &r) != nil {
			j.leave(at, "an object that is not read", "")
			continue
		}
		kind, ours := strings.CutPrefix(strings.ToLower(r.Model), djangoModel)
		switch {
		case !ours:
		case kind == "periodictask":
			var t periodicTask
			if json.Unmarshal(r.Fields, &t) != nil {
				j.leave(at, "a periodic task that is not read", "")
				continue
			}
			tasks = append(tasks, struct {
				at   Place
				task periodicTask
			}{at, t})
		default:
			rules[kind+string(r.PK)] = r.Fields
		}
	}
	for i := range tasks {
		j.periodic(tasks[i].at, &tasks[i].task, rules, zone)
	}
	if len(tasks) == 0 {
		return refused("no " + djangoModel + "periodictask in it")
	}
	return nil
}

func (j *Jobs) periodic(at Place, t *periodicTask, rules map[string]json.RawMessage, zone string) {
	if t.Name == "celery.backend_cleanup" { // Celery's own
		return
	}
	var rule schedule.Rule
	err := error(refused("its rule is no interval and no crontab, or is not in the file"))
	var interval intervalRow
	var crontab crontabRow
	switch {
	case t.Enabled != nil && !*t.Enabled:
		err = refused("not enabled")
	case t.OneOff:
		err = refused("runs once")
	case json.Unmarshal(rules["intervalschedule"+string(t.Interval)], &interval) == nil:
		rule, err = ruleOf(pyCall{name: "timedelta", named: map[string]any{interval.Period: interval.Every}}, zone)
	case json.Unmarshal(rules["crontabschedule"+string(t.Crontab)], &crontab) == nil:
		if crontab.Timezone != "" {
			zone = crontab.Timezone
		}
		fields := []string{crontab.Minute, crontab.Hour, crontab.Weekday, crontab.Day, crontab.Month}
		for i := range fields {
			if fields[i], _ = crontabField(fields[i]); fields[i] == "" {
				fields[i] = "*"
			}
		}
		rule, err = cronOfFields(fields[0], fields[1], fields[2], fields[3], fields[4], zone)
	}
	if err != nil {
		j.leave(at, t.Name+": "+err.Error(), "")
		return
	}
	rule.Start = t.StartTime
	args, kwargs := json.RawMessage("[]"), json.RawMessage("{}")
	if t.Args != "" {
		args = json.RawMessage(t.Args)
	}
	if t.Kwargs != "" {
		kwargs = json.RawMessage(t.Kwargs)
	}
	if !json.Valid(args) || !json.Valid(kwargs) {
		j.leave(at, t.Name+": the arguments are not JSON", "")
		return
	}
	payload := quoted(struct {
		Args   json.RawMessage `json:"args"`
		Kwargs json.RawMessage `json:"kwargs"`
	}{args, kwargs})
	queue := ""
	if t.Queue != nil {
		queue = *t.Queue
	}
	if t.Expires != nil || t.ExpireSeconds != nil {
		j.note(at, t.Name+": expires has no effect", "give until, if the schedule shall end")
	}
	if t.Priority != nil {
		j.note(at, t.Name+": priority has no effect", "give high, normal or low")
	}
	j.addBeat(at, t.Name, t.Task, queue, rule, payload)
}
