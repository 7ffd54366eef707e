package main

import (
	"context"
	"path"

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
	if _, err := path.Match(f.Match, ""); err != nil {
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
	if f.All {
		list, err := c.Schedules.List(ctx)
		if err != nil {
			return err
		}
		names = f.matching(list.Items)
	}
	if f.DryRun {
		out := admin.BulkResult{Matched: len(names), DryRun: true}
		if a.JSON {
			return a.printJSON(out)
		}
		a.printf("%d schedules would be %s", len(names), doing)
		return nil
	}
	return a.each(names, func(name string) (string, error) {
		word, err := do(c, name)
		return word, c.notFound(ctx, name, err)
	})
}

func (f *scheduleFilter) matching(list []admin.Schedule) (names []string) {
	for i := range list {
		s := &list[i]
		ok, _ := path.Match(f.Match, s.Name)
		if (ok || f.Match == "") && (f.Task == "" || f.Task == s.Task) {
			names = append(names, s.Name)
		}
	}
	return names
}
