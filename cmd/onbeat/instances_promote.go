package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

type instancesPromoteCmd struct {
	Release string `arg:"" help:"Release."`
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
	p, err := cl.Instances.Promote(ctx, c.Release)
	if errors.Is(err, queue.ErrNotFound) {
		return cl.unknownRelease(ctx, c.Release)
	}
	if err != nil {
		return err
	}
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

// unknownRelease says which releases there are.
func (c *client) unknownRelease(ctx context.Context, release string) error {
	var known []string
	list, _ := c.Instances.List(ctx)
	for _, i := range list.Items {
		if i.Release != "" {
			known = append(known, i.Release)
		}
	}
	// Releases differ by a digit: the nearest name is as likely the wrong one.
	hint := "a release that was stopped is the newest again when it is started"
	if len(known) > 0 {
		slices.Sort(known)
		hint = "known: " + strings.Join(slices.Compact(known), ", ") + "; " + hint
	}
	return &failure{fmt.Errorf("release %q: no instance of it is registered, and none was lost lately", release), hint}
}
