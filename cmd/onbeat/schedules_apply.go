package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/onbeat/onbeat/config"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

type schedulesApplyCmd struct {
	File   string `arg:"" predict:"file" help:"YAML file with schedules as in the config file, or only their list; - is stdin."`
	DryRun bool   `help:"Show which schedules apply would make and which fields it would change, and write nothing."`
}

// Help is shown by onbeat schedules apply --help.
func (c *schedulesApplyCmd) Help() string {
	return "Makes the schedules of the file, or changes those of the same name. It removes none: see onbeat schedules delete. A " +
		"schedule that a release declares is changed until the next leader of that release declares it again."
}

// Run makes and changes schedules, after it has checked all of them.
func (c *schedulesApplyCmd) Run(ctx context.Context, a *app) error {
	t, err := a.target()
	if err != nil {
		return err
	}
	list, err := c.read(ctx, a, t.limits())
	if err != nil {
		return err
	}
	cl, err := a.connectTo(ctx, t)
	if err != nil {
		return err
	}
	defer cl.Close()
	if c.DryRun {
		err = a.planSchedules(ctx, cl, list)
	} else {
		err = a.applySchedules(ctx, cl, list)
	}
	if err == nil {
		a.sayUnhandled(ctx, cl, list)
	}
	return err
}

func (a *app) applySchedules(ctx context.Context, cl *client, list []producer.Schedule) error {
	by := map[string]producer.Schedule{}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
		by[names[i]] = list[i]
	}
	return a.each(names, func(name string) (string, error) {
		did, err := cl.Schedules.Apply(ctx, by[name])
		if err == nil && did.Declared {
			a.noteDeclared(name, did.DeclaredBy, "Change %s too.")
		}
		return did.Result, err
	})
}

// read reads a list of schedules, alone or within a config.
func (c *schedulesApplyCmd) read(ctx context.Context, a *app, limits task.Limits) ([]producer.Schedule, error) {
	name, data, err := a.readSettings(ctx, c.File)
	if err != nil {
		return nil, err
	}
	f, err := config.Parse(name, data, a.env)
	if err != nil {
		return nil, err
	}
	return f.Schedules, f.CheckSchedules(limits)
}

// sayUnhandled notes on stderr which task types no instance handles.
func (a *app) sayUnhandled(ctx context.Context, cl *client, list []producer.Schedule) {
	instances, err := cl.Instances.List(ctx)
	if err != nil || len(instances.Items) == 0 {
		return
	}
	var said []string
	for i := range list {
		typ := list[i].Task
		handled := slices.Contains(said, typ)
		for _, x := range instances.Items {
			handled = handled || slices.Contains(x.Types, typ)
		}
		if !handled {
			said = append(said, typ)
			fmt.Fprintf(a.err, "onbeat: note: no instance handles %q: its tasks wait until one does\n", typ)
		}
	}
}
