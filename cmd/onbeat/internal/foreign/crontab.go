package foreign

import (
	"maps"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A Crontab is how to read a crontab.
type Crontab struct {
	// Timezone is the zone of the machine: the times of a crontab are its times, unless CRON_TZ names another zone.
	Timezone string
	// System tells that a line has the user before the command, as in /etc/crontab and /etc/cron.d.
	System bool
}

// assignment is a line of a crontab that sets a variable, as cron itself reads it.
var assignment = regexp.MustCompile(`^(?:"([^"]*)"|'([^']*)'|([^\s="']+))\s*=\s*(.*)$`)

// Read reads a crontab: crontab(5), with CRON_TZ and the - and the % of cronie and Vixie's cron.
func (c Crontab) Read(file string, data []byte) *Jobs {
	r := &tab{Crontab: c, jobs: &Jobs{}, zone: c.Timezone, shell: "/bin/sh", env: map[string]string{}}
	for i, line := range strings.Split(string(data), "\n") {
		at := Place{file, i + 1}
		line = strings.TrimLeft(strings.TrimRight(line, "\r"), " \t")
		switch m := assignment.FindStringSubmatch(line); {
		case line == "", line[0] == '#':
		case m != nil:
			r.set(at, m[1]+m[2]+m[3], unquoted(strings.TrimRight(m[4], " \t")))
		default:
			r.job(at, line)
		}
	}
	return r.jobs
}

// tab is a crontab that is being read.
type tab struct {
	Crontab
	jobs  *Jobs
	zone  string
	shell string
	env   map[string]string
}

func unquoted(s string) string {
	if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	return s
}

func (r *tab) set(at Place, name, value string) {
	switch {
	case name == "CRON_TZ":
		r.zone = value
	case name == "SHELL":
		r.shell = value
	case name == "MAILTO" && value == "", name == "MAILFROM":
	case name == "MAILTO":
		r.jobs.once(at, "MAILTO: nobody gets the output by mail", "failures go to the targets of notify, and the output of a run stands at the run")
	case name == "RANDOM_DELAY", name == "START_HOURS_RANGE":
		r.jobs.note(at, name+": has no effect", "use jitter")
	case strings.HasPrefix(name, "ONBEAT_"), name == "TRACEPARENT":
		r.jobs.note(at, name+": onbeat sets this variable itself", "give yours another name")
	default:
		r.env[name] = value
	}
}

func (r *tab) job(at Place, line string) {
	fields, rest := 5, line
	if line[0] == '@' {
		fields = 1
	}
	var rule []string
	for range fields {
		var word string
		word, rest = cut(rest)
		rule = append(rule, word)
	}
	user := ""
	if r.System {
		user, rest = cut(rest)
	}
	when := strings.TrimPrefix(strings.Join(rule, " "), "-") // - keeps a job out of the syslog
	switch {
	case rest == "":
		r.jobs.leave(at, "no command after the time", "of a crontab with a user before each command, pass --system")
		return
	case !utf8.ValidString(rest):
		r.jobs.leave(at, "the command is not UTF-8", "write it in UTF-8")
		return
	case when == "@reboot":
		r.jobs.leave(at, "@reboot: onbeat knows no start of a machine", "use a unit of systemd")
		return
	}
	command, stdin := percent(rest)
	run := execution{Command: []string{r.shell, "-c", command}, Dir: r.env["HOME"], Stdin: stdin, Env: maps.Clone(r.env)}
	delete(run.Env, "HOME")
	s := asCron(script(command), when, r.zone)
	s.Task, s.Payload = "exec", run.payload()
	if !r.jobs.add(at, line, s) {
		return
	}
	if user != "" {
		r.jobs.once(at, "user "+user+": the command runs as the user of the instance", "run an instance as "+user+", or begin the command with runuser -u "+user+" --")
	}
	if run.Dir == "" {
		r.jobs.once(at, "cron starts commands in the home folder of the user, and onbeat in the folder of the instance", "give dir in the payload where it matters")
	}
}

// cut returns the first word of a text, and what follows the blanks behind it.
func cut(text string) (word, rest string) {
	i := strings.IndexAny(text, " \t")
	if i < 0 {
		return text, ""
	}
	return text[:i], strings.TrimLeft(text[i:], " \t")
}

// percent splits the text behind the time at the first % without a \ before it: the rest is the input, and each further % a new line.
func percent(text string) (command, stdin string) {
	var parts [2]strings.Builder
	at := 0
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == '%':
			parts[at].WriteByte('%')
			i++
		case text[i] == '%' && at == 0:
			at = 1
		case text[i] == '%':
			parts[1].WriteByte('\n')
		default:
			parts[at].WriteByte(text[i])
		}
	}
	if at == 1 {
		parts[1].WriteByte('\n')
	}
	return strings.TrimRight(parts[0].String(), " \t"), parts[1].String()
}
