// Package foreign reads the jobs of other schedulers as schedules of onbeat: crontabs, timers of systemd, CronJobs of Kubernetes, the
// schedules of Celery beat and of asynq.
//
// A job keeps what it had: it is not retried where it was not, and a slot that nobody could run stays missed where it did. Each construct
// that onbeat has otherwise, or not at all, is a [Note] with its place.
package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// longRun is the timeout of jobs that had none. The default of onbeat would end runs that were let be.
const longRun = 24 * time.Hour

// A Job is a job of another scheduler, and the schedule that it becomes.
type Job struct {
	Place
	// Was is how the other scheduler had it, in one line.
	Was      string
	Schedule producer.Schedule
}

// A Place is where something stands.
type Place struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"` // from 1; 0: the file as a whole, or no file
}

func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// A Note names a construct that does not carry over.
type Note struct {
	Place
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
	// Left tells that a whole job is left out. Otherwise it runs, and differs by that.
	Left bool `json:"left_out"`
}

func (n *Note) String() string {
	text := n.Text
	if n.Left {
		text = "left out: " + text
	}
	return n.Place.String() + ": " + wording.WithHint(text, n.Hint)
}

// Jobs are what was read, in the order in which it stands there.
type Jobs struct {
	List  []Job
	Notes []Note

	names map[string]bool
	said  map[string]bool // notes that are made once
}

// Left counts the jobs that were left out.
func (j *Jobs) Left() (n int) {
	for i := range j.Notes {
		if j.Notes[i].Left {
			n++
		}
	}
	return n
}

// Schedules lists the schedules alone.
func (j *Jobs) Schedules() []producer.Schedule {
	list := make([]producer.Schedule, len(j.List))
	for i := range j.List {
		list[i] = j.List[i].Schedule
	}
	return list
}

func (j *Jobs) note(at Place, text, hint string) {
	j.Notes = append(j.Notes, Note{Place: at, Text: text, Hint: hint})
}

// once makes a note the first time.
func (j *Jobs) once(at Place, text, hint string) {
	if j.said == nil {
		j.said = map[string]bool{}
	}
	if !j.said[text] {
		j.said[text] = true
		j.note(at, text, hint)
	}
}

func (j *Jobs) leave(at Place, text, hint string) {
	j.Notes = append(j.Notes, Note{Place: at, Text: text, Hint: hint, Left: true})
}

// add takes a job whose schedule is valid, and leaves out every other one. The name may become another: see [Jobs.name].
func (j *Jobs) add(at Place, was string, s *producer.Schedule) (taken bool) {
	wanted := s.Name
	s.Name = "x" // so that a name is only used up by a job that is taken
	err := s.Validate(task.Limits{})
	if err == nil {
		err = config.CheckPayload(builtin(), s.Task, s.Payload, false)
	}
	if err != nil {
		var field *task.FieldError
		if errors.As(err, &field) {
			j.leave(at, strings.TrimSpace(field.Field+" "+field.Value)+": "+field.Reason, field.Hint)
			return false
		}
		j.leave(at, err.Error(), "")
		return false
	}
	s.Name = j.name(wanted)
	j.List = append(j.List, Job{Place: at, Was: was, Schedule: *s})
	return true
}

// builtin has the handlers that the program brings.
var builtin = sync.OnceValue(config.NewMux)

// name makes a valid name of a text, unlike the names before it: a second backup is backup-2.
func (j *Jobs) name(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_.:/+", r):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	base := strings.Trim(b.String(), "-/.")
	if base = base[:min(len(base), task.MaxNameLen-8)]; base == "" {
		base = "job"
	}
	if j.names == nil {
		j.names = map[string]bool{}
	}
	name := base
	for n := 2; j.names[name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	j.names[name] = true
	return name
}

// asides are the words before the program that a command is about.
var asides = []string{"", "[", "test", "!", "exec", "env", "nice", "ionice", "sudo", "sh", "bash", "timeout", "chronic", "command", "if", "then", "time"}

// script names a job after the program that a command of a shell starts.
func script(command string) string {
	skip := false
	for word := range strings.FieldsSeq(command) {
		word = strings.Trim(word, `"'();&|`)
		base := path.Base(word)
		switch {
		case skip, slices.Contains(asides, base), strings.HasPrefix(word, "-"), strings.Trim(word, "0123456789.") == "":
			skip = false
		case base == "cd", base == "flock": // a folder, or the file of the lock, follows
			skip = true
		case !strings.ContainsAny(word, "=$`<>*{") && base != "/":
			return base
		}
	}
	return "job"
}

// asCron makes the schedule of a job that ran by a cron expression, in the zone, without a retry and without slots made up for.
func asCron(name, cron, zone string) *producer.Schedule {
	if zone == "UTC" || zone == "Etc/UTC" {
		zone = ""
	}
	return &producer.Schedule{
		Name: name, Rule: schedule.Rule{Cron: cron, Timezone: zone, Missed: schedule.MissedSkip}, Timeout: longRun, MaxAttempts: 1,
	}
}

// asRobfig is asCron of an expression that robfig/cron read. There a day field with a step is no star, and DST is not smoothed: a time that
// the clock leaves out has no run, and a time that comes twice has two.
func asRobfig(name, cron, zone string) *producer.Schedule {
	hour := ""
	if fields := strings.Fields(strings.ReplaceAll(cron, "?", "*")); len(fields) == 5 {
		hour = fields[1]
		fields[2], fields[4] = dayField(fields[2], "1-31"), dayField(fields[4], "0-6")
		cron = strings.Join(fields, " ")
	}
	s := asCron(name, cron, zone)
	if s.Timezone != "" && hour != "*" && cron != "@hourly" {
		s.DST = schedule.DST{Gap: schedule.DSTGapSkip, Overlap: schedule.DSTOverlapBoth}
	}
	return s
}

// dayField writes a day field of robfig/cron so that it begins with a star only if it is one.
func dayField(field, all string) string {
	items := strings.Split(field, ",")
	for i, item := range items {
		switch rest, star := strings.CutPrefix(item, "*"); {
		case star && (rest == "" || rest == "/1"):
			return "*"
		case star:
			items[i] = all + rest
		}
	}
	return strings.Join(items, ",")
}

// An execution is the payload of exec.
type execution struct {
	Command []string          `json:"command"`
	Env     map[string]string `json:"env,omitempty"`
	Dir     string            `json:"dir,omitempty"`
	Stdin   string            `json:"stdin,omitempty"`
}

func (e *execution) payload() json.RawMessage { return quoted(e) }
