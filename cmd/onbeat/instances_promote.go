package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

type instancesPromoteCmd struct {
	Release string `arg:"" help:"Release."`
}

// promoted is what became of a release.
type promoted struct {
	Release string `json:"release"`
	Leader  string `json:"leader"` // an instance, of whatever release
	Leads   bool   `json:"leads"`  // it is of this one
}

// Help says when.
func (*instancesPromoteCmd) Help() string {
	return "A release that was lost, rather than stopped, is as old as it was when it comes back within a day: it does not take " +
		"the lead from a newer one. This says that it shall."
}

// Run makes a release the newest.
func (c *instancesPromoteCmd) Run(ctx context.Context, a *app) error {
	if err := task.CheckID("release", c.Release); err != nil {
		return err
	}
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	v, err := cl.Instances().Promote(ctx, c.Release)
	if errors.Is(err, queue.ErrNotFound) {
		return cl.unknownRelease(ctx, c.Release)
	}
	if err != nil {
		return err
	}
	list, err := cl.Instances().List(ctx)
	if err != nil {
		return err
	}
	p := promoted{Release: c.Release, Leader: v.Leader, Leads: leads(list, v.Leader, c.Release)}
	switch {
	case a.JSON:
		return a.printJSON(p)
	case p.Leads:
		a.printf("%s %s: %s leads", a.style.green("promoted"), c.Release, p.Leader)
	default:
		a.printf("%s %s: it leads as soon as an instance of it is ready", a.style.green("promoted"), c.Release)
	}
	return nil
}

func leads(list []instance.Info, id, release string) bool {
	for i := range list {
		if list[i].ID == id {
			return list[i].Release == release
		}
	}
	return false
}

// unknownRelease says which releases there are.
func (c *client) unknownRelease(ctx context.Context, release string) error {
	var known []string
	list, _ := c.Instances().List(ctx)
	for i := range list {
		if list[i].Release != "" {
			known = append(known, list[i].Release)
		}
	}
	// Releases differ by a digit: the nearest name is as likely the wrong one.
	hint := "a release that was stopped is the newest again when it is started"
	if len(known) > 0 {
		slices.Sort(known)
		hint = "known are " + strings.Join(slices.Compact(known), ", ") + "; " + hint
	}
	return &failure{fmt.Errorf("release %q: no instance of it is registered, and none was lost lately", release), hint}
}
