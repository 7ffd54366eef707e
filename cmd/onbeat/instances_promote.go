package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/task"
)

type instancesPromoteCmd struct {
	Release string `arg:"" help:"Release."`
}

// Help says when to use the command.
func (*instancesPromoteCmd) Help() string {
	return "A lost release, one that crashed and was not stopped, keeps its place for a day: when it comes back, it does not lead " +
		"before a newer release. promote makes it the newest, so that it leads."
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
	if errors.Is(err, task.ErrNotFound) {
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

// unknownRelease adds the known releases to the error.
func (c *client) unknownRelease(ctx context.Context, release string) error {
	var known []string
	list, _ := c.Instances.List(ctx)
	for _, i := range list.Items {
		if i.Release != "" {
			known = append(known, i.Release)
		}
	}
	// Releases often differ by one digit, so the nearest name is as likely the wrong one.
	hint := "a release that was stopped becomes the newest when it starts again"
	if len(known) > 0 {
		slices.Sort(known)
		hint = "known: " + strings.Join(slices.Compact(known), ", ") + "; " + hint
	}
	return &failure{fmt.Errorf("release %q: no instance of it is registered, and none was lost lately", release), hint}
}
