package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

type checkCmd struct {
	File        string `arg:"" predict:"file" help:"Config file, or a list of schedules as in schedules apply; - is stdin."`
	AgainstLive bool   `help:"Also ask the namespace which schedules will be retired: a release declares them now, and this file does not."`
	AllowExec   bool   `help:"Check for a serve with this flag: it lets tasks run programs (the exec handler)."`
}

// Help is shown by onbeat check --help.
func (c *checkCmd) Help() string {
	return "Checks a whole config file as serve with the same flags would, without Redis: settings, schedules, cron rules, task types and their " +
		"payloads. In a list of schedules alone, it accepts task types that onbeat has no handler for.\n\n" +
		"Prints OK and the next slot of each schedule, or each problem as FILE:LINE: FIELD: what is wrong. It warns of an " +
		"environment variable that the file names and that is not set here, of a token of the API or a secret of notify that cannot be read here, and of a missing namespace. It asks Redis only with --against-live. Exits with 1 if there is a problem, 2 if it cannot read the file."
}

// checked is the result of a check.
type checked struct {
	File      string         `json:"file"`
	OK        bool           `json:"ok"`
	Problems  []fault        `json:"problems"`
	Warnings  []fault        `json:"warnings"`
	Schedules []nextSlotLine `json:"schedules"`
	Retired   []admin.Plan   `json:"will_be_retired,omitempty"` // with --against-live
}

// fault is a problem or a warning, with its place in the file.
type fault struct {
	Line   int    `json:"line,omitempty"`
	Field  string `json:"field,omitempty"`
	Value  string `json:"value,omitempty"`
	Reason string `json:"reason"`
	Hint   string `json:"hint,omitempty"`

	text string // the whole message, with the file's name
}

// nextSlotLine is a schedule and its next slot.
type nextSlotLine struct {
	Name string    `json:"name"`
	When string    `json:"when"`
	Next time.Time `json:"next,omitzero"` // zero: not known, or no slot is left
	Note string    `json:"note,omitempty"`
}

// Run checks the file, and fails if it has a problem.
func (c *checkCmd) Run(ctx context.Context, a *app) error {
	if !c.AgainstLive && (a.Redis+a.Archive+a.API+a.TokenFile != "" || a.PlainHTTP) {
		return &usageError{"--redis, --archive, --api, --token-file and --plain-http mean nothing without --against-live", "leave them out"}
	}
	name, data, err := a.readSettings(ctx, c.File)
	if err != nil {
		return err
	}
	found := checked{File: name, Problems: []fault{}, Warnings: []fault{}, Schedules: []nextSlotLine{}}
	f, err := config.Parse(name, data, a.env)
	switch {
	case err != nil:
	case f.Alone:
		err = f.CheckSchedules(task.Limits{})
	default:
		err = config.Sorted(f.Check(), f.CheckExec(c.AllowExec))
		found.Warnings = append(a.namespaceWarning(f), faultsOf(f.Unset(), redisFileOf(f), archiveFileOf(f), f.Lacking())...)
		if err == nil {
			_, lacking := f.Notify.Targets(a.env)
			_, beat := f.Heartbeat.Resolve(a.env)
			found.Warnings = append(found.Warnings, faultsOf(a.tokensOf(f), lacking, beat)...)
		}
	}
	found.Problems = faultsOf(err)
	if found.OK = err == nil; found.OK {
		found.addSchedules(f, time.Now())
	}
	if c.AgainstLive && found.OK {
		if found.Retired, err = a.retiredBy(ctx, f); err != nil {
			return err
		}
	}
	if a.JSON {
		if err := a.printJSON(found); err != nil {
			return err
		}
	} else {
		a.printChecked(&found)
		if f != nil {
			a.printRetired(f, found.Retired)
		}
	}
	if !found.OK {
		return errSaid
	}
	return nil
}

// namespaceWarning warns of a file that serve refuses unless a flag or the environment names the namespace.
func (a *app) namespaceWarning(f *config.File) []fault {
	if _, err := a.namespaceOf(f); !errors.Is(err, errNoNamespace) {
		return faultsOf(err) // such as ONBEAT_NAMESPACE, which says another
	}
	const hint = "pass --namespace or set ONBEAT_NAMESPACE"
	return []fault{{Field: "namespace", Reason: "missing", Hint: hint, text: f.Name + ": no namespace: " + hint}}
}

// redisFileOf reports why the file with the Redis URL cannot be used, if the config names such a file.
func redisFileOf(f *config.File) error {
	if !strings.HasPrefix(f.Redis.URL, config.FilePrefix) {
		return nil
	}
	url, err := redisURL(f.Redis.URL)
	if err != nil {
		return f.At(err)
	}
	rdb, err := config.Dial(onbeat.Dialer{}, f.WithTLS(url))
	if err != nil {
		return f.At(err)
	}
	return rdb.Close()
}

// tokensOf reports each token of the API that serve could not read here.
func (a *app) tokensOf(f *config.File) error {
	var list []error
	for i := range f.API.Tokens {
		if _, err := f.API.Tokens[i].Secret(a.env); err != nil {
			list = append(list, f.At(err))
		}
	}
	return config.Sorted(list...)
}

// faultsOf returns the faults in an error of a config file.
func faultsOf(errs ...error) []fault {
	list := []fault{}
	for _, err := range errs {
		for _, p := range config.ProblemsOf(err) {
			one := fault{Line: p.Line, Reason: secret.Text(p.Err.Error()), text: said(p)}
			if field := field.Of(p); field != nil {
				one.Field, one.Value = secret.Value(field.Field), secret.Value(field.Value)
				one.Reason, one.Hint = secret.Text(field.Reason), secret.Text(field.Hint)
			}
			list = append(list, one)
		}
	}
	return list
}

// addSchedules adds the next slot of each schedule, and warns of schedules that have no slot left.
func (c *checked) addSchedules(f *config.File, now time.Time) {
	for i := range f.Schedules {
		line := nextSlotOf(&f.Schedules[i], now)
		if line.Next.IsZero() && line.Note == "" {
			line.Note = "no slot is left"
			c.Warnings = append(c.Warnings, faultsOf(f.At(&task.FieldError{
				Field: fmt.Sprintf("schedules[%d].until", i), Value: at(f.Schedules[i].Until), Reason: line.Note, Hint: "leave the schedule out",
			}))...)
		}
		c.Schedules = append(c.Schedules, line)
	}
}

// nextSlotOf returns the next slot of a schedule. The grid of an interval begins when the schedule is made, and only Redis
// knows that time.
func nextSlotOf(s *producer.Schedule, now time.Time) nextSlotLine {
	line := nextSlotLine{Name: s.Name, When: schedule.Describe(s.Rule)}
	if s.Every > 0 && s.Start == "" && (s.Until.IsZero() || s.Until.After(now)) {
		line.Note = "the grid begins when the schedule is made"
		return line
	}
	if grid, err := s.Grid(s.FirstAnchor(now)); err == nil {
		if next := grid.Next(now); !next.IsZero() {
			line.Next = next.In(s.Location())
		}
	}
	return line
}

func (a *app) printChecked(c *checked) {
	for _, p := range c.Problems {
		a.printf("%s", p.text)
	}
	for _, w := range c.Warnings {
		a.printf("%s %s", a.style.yellow("warning:"), w.text)
	}
	if !c.OK {
		a.printf("%s", a.style.red(wording.Count(int64(len(c.Problems)), "problem", "problems")))
		return
	}
	a.printf("%s %s: %s", a.style.green("OK"), c.File, wording.Count(int64(len(c.Schedules)), "schedule", "schedules"))
	if len(c.Schedules) == 0 {
		return
	}
	now := time.Now()
	t := a.table("NAME", "WHEN", "NEXT")
	for _, s := range c.Schedules {
		next := both(s.Next, now)
		if s.Next.IsZero() {
			next = s.Note
		}
		t.add(s.Name, s.When, next)
	}
	t.print(a.out)
}
