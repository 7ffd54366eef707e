package main

import (
	"cmp"
	"context"
	"path"
	"strings"

	"github.com/onbeat/onbeat/admin"
)

// scheduleFilter selects schedules, by name or by pattern and type.
type scheduleFilter struct {
	Names  []string `arg:"" optional:"" name:"name" predict:"schedule" help:"Schedules."`
	All    bool     `help:"Every schedule that the filters below match."`
	Match  string   `placeholder:"PATTERN" help:"With --all: only names that match, such as 'billing.*' (* and ? as in a shell)."`
	Task   string   `placeholder:"T" help:"With --all: only schedules whose tasks are of this type."`
	DryRun bool     `help:"With --all: only count them."`
}

// check refuses names and filters that exclude each other.
func (f *scheduleFilter) check() error {
	if f.All == (len(f.Names) > 0) {
		return &usageError{"which schedules?", "name some, or --all for every one that --match and --task match"}
	}
	for _, v := range []struct{ name, value string }{{"match", f.Match}, {"task", f.Task}} {
		if !f.All && v.value != "" {
			return onlyWithAll(v.name)
		}
	}
	if !f.All && f.DryRun {
		return onlyWithAll("dry-run")
	}
	if _, err := path.Match(flat.Replace(f.Match), ""); err != nil {
		return refuse("match", f.Match, "not a pattern", `* is any text, ? any character, [ab] one of a and b`)
	}
	return nil
}

// onlyWithAll refuses a flag that selects nothing among names.
func onlyWithAll(flag string) error {
	return &usageError{"--" + flag + " works only with --all", ""}
}

// each calls do for each named schedule, or for each one that the filter matches, and prints the results.
func (f *scheduleFilter) each(ctx context.Context, a *app, doing string, do func(*client, string) (string, error)) error {
	if err := f.check(); err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	names := f.Names
	var unread error // of schedules that a newer release wrote: they are left alone
	if f.All {
		list, err := c.Schedules.List(ctx)
		if err != nil && len(list.Items) == 0 {
			return err
		}
		if err := lacking(absent(list.CouldNotAsk)); err != nil {
			return err // "all" would not be all
		}
		names, unread = f.matching(list.Items), err
	}
	if f.DryRun {
		out := admin.BulkResult{Matched: len(names), DryRun: true}
		if a.JSON {
			return cmp.Or(a.printJSON(out), unread)
		}
		a.printf("%d schedules would be %s", len(names), doing)
		for _, name := range names {
			a.printf("  %s", oneCell(name))
		}
		return unread
	}
	err = a.each(names, func(name string) (string, error) {
		word, err := do(c, name)
		return word, c.notFound(ctx, name, err)
	})
	return cmp.Or(err, unread)
}

// flat takes the meaning of a separator from the slash, which names of schedules may have: a pattern is not about folders.
var flat = strings.NewReplacer("/", "\x00")

func (f *scheduleFilter) matching(list []admin.Schedule) (names []string) {
	for i := range list {
		s := &list[i]
		ok, _ := path.Match(flat.Replace(f.Match), flat.Replace(s.Name))
		if (ok || f.Match == "") && (f.Task == "" || f.Task == s.Task) {
			names = append(names, s.Name)
		}
	}
	return names
}
