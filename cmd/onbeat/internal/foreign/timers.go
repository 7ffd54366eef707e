package foreign

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Timers reads the timers of systemd in a folder, each with its service: systemd.timer(5). The zone is that of the machine.
// A unit that cannot be read stops no other: each timer becomes a schedule or a note.
func (j *Jobs) Timers(dir, zone string) error {
	names, err := namesLike(dir, ".timer")
	if err != nil {
		return err
	}
	for _, name := range names {
		j.timer(dir, name, zone)
	}
	return nil
}

// Settings of units that need no word: onbeat does the same, or they are for systemd alone.
var (
	quietSections = []string{"Unit", "Install"}
	quietTimer    = []string{"OnCalendar", "OnUnitActiveSec", "OnUnitInactiveSec", "OnBootSec", "OnStartupSec", "OnActiveSec", "Persistent", "RandomizedDelaySec",
		"FixedRandomDelay", "AccuracySec", "Unit"}
	triggers     = []string{"OnCalendar", "OnUnitActiveSec", "OnUnitInactiveSec", "OnBootSec", "OnStartupSec", "OnActiveSec"}
	quietService = []string{"Type", "ExecStart", "WorkingDirectory", "Environment", "TimeoutStartSec", "TimeoutSec", "RuntimeMaxSec", "StandardOutput", "StandardError",
		"SyslogIdentifier", "RemainAfterExit"}
)

func (j *Jobs) timer(dir, name, zone string) {
	file := filepath.Join(dir, name)
	timer, err := readUnit(dir, name)
	if err != nil {
		j.leave(Place{File: file}, name+" "+whyNotRead(err), "")
		return
	}
	of := strings.TrimSuffix(name, ".timer") + ".service"
	if s, ok := timer.last("Timer", "Unit"); ok {
		of = s.value
	}
	if filepath.Base(of) != of {
		j.leave(Place{File: file}, "Unit="+of+" is no name of a unit", "")
		return
	}
	service, err := readUnit(dir, of)
	switch {
	case isMissing(err):
		j.leave(Place{File: file}, of+" is not in the folder", "copy it there: systemctl cat "+of)
		return
	case err != nil:
		j.leave(Place{File: filepath.Join(dir, of)}, of+" "+whyNotRead(err), "")
		return
	}
	run, why := executionOf(service)
	if why != nil {
		j.leave(why.Place, why.value, "")
		return
	}
	base := producer.Schedule{Task: "exec", Payload: run.payload(), Timeout: longRun, MaxAttempts: 1}
	base.Overlap, base.Missed = schedule.OverlapSkip, schedule.MissedSkip // a service that is active is not started again
	if timer.isOn("Timer", "Persistent") {
		base.Missed = schedule.MissedOnce
	}
	limits := []string{"RuntimeMaxSec"}
	if s, _ := service.last("Service", "Type"); s.value == "oneshot" { // its run is its start
		limits = []string{"TimeoutSec", "TimeoutStartSec"}
	}
	for _, key := range limits {
		if s, ok := service.last("Service", key); ok {
			if d, ok := spanOf(s.value); ok {
				base.Timeout = d
			} else if s.value != "infinity" && s.value != "0" {
				j.note(s.Place, key+"="+s.value+": not read", "give timeout")
			}
		}
	}
	jitter := time.Duration(0)
	if s, ok := timer.last("Timer", "RandomizedDelaySec"); ok {
		if jitter, ok = spanOf(s.value); !ok && s.value != "0" {
			j.note(s.Place, "RandomizedDelaySec="+s.value+": not read", "give jitter")
		}
	}
	taken, repeats := false, false
	take := func(s *setting, rule schedule.Rule) bool {
		one := base
		one.Name = strings.TrimSuffix(name, ".timer")
		rule.Missed, rule.Overlap, rule.Jitter = base.Missed, base.Overlap, jitter
		one.Rule = rule
		ok := j.add(s.Place, s.key+"="+s.value, &one)
		taken = taken || ok
		return ok
	}
	for _, s := range timer.all("Timer", "OnCalendar") {
		cron, in, err := cronOf(s.value)
		if err != nil {
			j.leave(s.Place, "OnCalendar="+s.value+": "+err.Error(), "write a cron expression that you mean")
			continue
		}
		if in == "" {
			in = zone
		}
		take(&s, asCron("", cron, in).Rule)
	}
	for _, key := range []string{"OnUnitActiveSec", "OnUnitInactiveSec"} {
		s, ok := timer.last("Timer", key)
		if !ok {
			continue
		}
		every, ok := spanOf(s.value)
		if !ok {
			j.leave(s.Place, key+"="+s.value+": not read", "give every")
			continue
		}
		repeats = take(&s, schedule.Rule{Every: every}) || repeats
		if key == "OnUnitInactiveSec" {
			j.note(s.Place, "OnUnitInactiveSec counts from the end of a run, and every from slot to slot", "")
		}
	}
	for _, key := range []string{"OnBootSec", "OnStartupSec", "OnActiveSec"} {
		why := key + ": onbeat knows no start of a machine"
		switch s, ok := timer.last("Timer", key); {
		case !ok, repeats: // it began the repetition
		case taken:
			j.note(s.Place, why, "use a unit of systemd")
		default:
			j.leave(s.Place, why, "use a unit of systemd")
		}
	}
	switch {
	case taken:
		j.others(timer, "Timer", quietTimer)
		j.others(service, "Service", quietService)
	case !timer.hasAny("Timer", triggers...):
		j.leave(Place{File: file}, name+" has no OnCalendar and no OnUnitActiveSec", "")
	}
}

// whyNotRead says what is wrong with a file, without its path.
func whyNotRead(err error) string {
	var path *fs.PathError
	var field *task.FieldError
	switch {
	case errors.As(err, &path):
		return "cannot be read: " + path.Err.Error()
	case errors.As(err, &field):
		return "cannot be read: " + field.Reason
	}
	return err.Error()
}

// others names the settings that have no effect.
func (j *Jobs) others(u *unit, section string, quiet []string) {
	for i := range u.settings {
		s := &u.settings[i]
		switch {
		case slices.Contains(quietSections, s.section), s.section == section && slices.Contains(quiet, s.key):
		case s.key == "User" || s.key == "DynamicUser" || s.key == "Group":
			j.note(s.Place, s.key+"="+s.value+": the command runs as the user of the instance", "run an instance as that user")
		default:
			j.note(s.Place, "["+s.section+"] "+s.key+" has no effect", "")
		}
	}
}

// executionOf returns the payload of a service, or the setting that has none, with the reason as its value.
func executionOf(service *unit) (execution, *setting) {
	run := execution{}
	starts := service.all("Service", "ExecStart")
	if len(starts) != 1 {
		at := setting{value: "the service has no ExecStart"}
		if len(starts) > 1 {
			at = starts[1]
			at.value = fmt.Sprintf("%d commands in ExecStart: a run is one", len(starts))
		} else if len(service.settings) > 0 {
			at.Place = service.settings[0].Place
		}
		return run, &at
	}
	start := starts[0]
	words, ok := wordsOf(strings.TrimLeft(start.value, "@-:+!"))
	if !ok || len(words) == 0 || strings.HasPrefix(start.value, "@") {
		start.value = "ExecStart=" + start.value + ": not read"
		return run, &start
	}
	if strings.HasPrefix(start.value, "-") { // a failure counts as a success
		words = append([]string{"/bin/sh", "-c", `"$0" "$@" || :`}, words...)
	}
	run.Command = words
	if s, ok := service.last("Service", "WorkingDirectory"); ok {
		run.Dir = strings.TrimPrefix(s.value, "-")
		if strings.HasPrefix(run.Dir, "~") || strings.Contains(strings.ReplaceAll(run.Dir, "%%", ""), "%") {
			s.value = "WorkingDirectory=" + s.value + ": not read"
			return run, &s
		}
		run.Dir = strings.ReplaceAll(run.Dir, "%%", "%")
	}
	for _, s := range service.all("Service", "Environment") {
		pairs, ok := wordsOf(s.value)
		if !ok {
			s.value = "Environment=" + s.value + ": not read"
			return run, &s
		}
		for _, pair := range pairs {
			if run.Env == nil {
				run.Env = map[string]string{}
			}
			name, value, _ := strings.Cut(pair, "=")
			run.Env[name] = value
		}
	}
	for _, text := range append([]string{run.Dir}, run.Command...) {
		if strings.Contains(text, "$") && !strings.HasPrefix(start.value, "-") && !strings.HasPrefix(start.value, ":") {
			start.value = "ExecStart=" + start.value + ": systemd puts variables in, and onbeat does not (let a shell do it: /bin/sh -c)"
			return run, &start
		}
	}
	return run, nil
}

// wordsOf splits a command line of systemd. It is not ok if a quote has no end, or a specifier such as %i is in it.
func wordsOf(line string) (words []string, ok bool) {
	var word strings.Builder
	var quote rune
	inWord := false
	runes := []rune(line)
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; {
		case r == '%':
			if i+1 == len(runes) || runes[i+1] != '%' {
				return nil, false
			}
			i++
			word.WriteRune('%')
			inWord = true
		case r == '\\' && quote != '\'' && i+1 < len(runes):
			i++
			text, err := strconv.Unquote(`"\` + string(runes[i]) + `"`)
			if err != nil {
				text = string(runes[i])
			}
			word.WriteString(text)
			inWord = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, inWord = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, quote == 0
}
