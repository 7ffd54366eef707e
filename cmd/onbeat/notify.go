package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/handlers/notify"
)

type notifyCmd struct {
	Test notifyTestCmd `cmd:"" help:"Send a test message to each target of the config, or to one."`
}

type notifyTestCmd struct {
	Target string `arg:"" optional:"" help:"Name of the target. Default: each."`
}

// Help is shown by onbeat notify test --help.
func (*notifyTestCmd) Help() string {
	return "Sends one message to each target, as serve with the same config would, but from this process, once, and without Redis. " +
		"Exits with 1 if a target does not take it."
}

// tried is what onbeat notify test prints of a target as JSON.
type tried struct {
	Target string `json:"target"`
	Kind   string `json:"kind"`
	Sent   bool   `json:"sent"`
	Error  string `json:"error,omitempty"`
}

// Run sends the messages.
func (c *notifyTestCmd) Run(ctx context.Context, a *app) error {
	if a.Config == "" {
		return refuse("config", "", "missing", "name the config with the targets by -c")
	}
	file, err := a.loadConfig(a.Config)
	if err != nil {
		return err
	}
	targets, err := file.Notify.Targets(a.env)
	if err != nil {
		return err
	}
	namespace, err := a.namespaceOf(file)
	if err != nil {
		return err
	}
	var names []string
	for i := range targets {
		names = append(names, targets[i].Name)
	}
	switch {
	case len(targets) == 0:
		return refuse("notify", "", "the config has no target", "see docs/notify.md")
	case c.Target != "" && !slices.Contains(names, c.Target):
		return refuse("target", c.Target, "the config has no such target", "one of "+strings.Join(names, ", "))
	}
	list := []tried{}
	for i := range targets {
		if t := &targets[i]; c.Target == "" || c.Target == t.Name {
			list = append(list, try(ctx, t, namespace))
		}
	}
	return a.printTried(list)
}

func try(ctx context.Context, t *notify.Target, namespace string) tried {
	one := tried{Target: t.Name, Kind: string(t.Kind), Sent: true}
	if one.Kind == "" {
		one.Kind = string(notify.JSON)
	}
	if err := notify.Send(ctx, *t, notify.Sample(namespace, notify.Test, time.Now().UTC())); err != nil {
		one.Sent, one.Error = false, err.Error()
	}
	return one
}

func (a *app) printTried(list []tried) error {
	failed := slices.ContainsFunc(list, func(t tried) bool { return !t.Sent })
	if a.JSON {
		if err := a.printJSON(map[string]any{"items": list}); err != nil {
			return err
		}
	} else {
		t := a.table("TARGET", "KIND", "RESULT")
		for _, one := range list {
			if one.Sent {
				t.add(one.Target, one.Kind, cell{"sent", a.style.green})
			} else {
				t.add(one.Target, one.Kind, cell{one.Error, a.style.red})
			}
		}
		t.print(a.out)
	}
	if failed {
		return errSaid
	}
	return nil
}
