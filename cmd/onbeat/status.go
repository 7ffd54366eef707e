package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
)

type statusCmd struct{}

// Help is shown by onbeat status --help.
func (c *statusCmd) Help() string {
	return "Says whether the namespace is well now, and what is wrong, the worst first. Exits with 1 if something is wrong, and with 75 if " +
		"Redis or the API does not answer, so that it could not be told.\n\n" +
		"\"onbeat doctor\" says whether all is set up well, \"onbeat audit\" what became of each slot."
}

// Run shows the status. It has an exit code of its own for a status that could not be told.
func (c *statusCmd) Run(ctx context.Context, a *app) error {
	err := c.show(ctx, a)
	if store.Retryable(err) {
		return &exitStatus{exitNoRedis, err}
	}
	return err
}

func (c *statusCmd) show(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	s, err := cl.Activity.Status(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.printJSON(s)
	} else {
		a.showStatus(cl.namespace, &s)
	}
	if err == nil && !s.Well {
		return errSaid
	}
	return err
}

// pasteable returns a command of onbeat with the flags of this one that say which namespace is meant, but for values that may be secret.
func (a *app) pasteable(command string) string {
	flags := "onbeat"
	for _, f := range []struct{ name, value string }{{"-c", a.Config}, {"-n", a.Namespace}, {"--api", a.API}} {
		refused := f.name == "--api" && command == "onbeat doctor"
		if f.value != "" && !refused && !strings.ContainsAny(f.value, "@ '\"$\\?") {
			flags += " " + f.name + " " + f.value
		}
	}
	return flags + strings.TrimPrefix(command, "onbeat")
}

func (a *app) showStatus(namespace string, s *admin.Status) {
	verdict := a.style.green("✓ all is well")
	switch {
	case !s.Well && len(s.Trouble) == 0:
		verdict = a.style.red("✗ not all could be asked")
	case !s.Well:
		verdict = a.style.red("✗ something is wrong")
	case len(s.Trouble) > 0 && s.Trouble[0].Kind == string(admin.Paused) && s.Trouble[0].Name == "":
		verdict = a.style.yellow("! no task begins: all instances are paused")
	case len(s.Trouble) > 0:
		verdict = a.style.yellow("✓ everything runs; there are warnings")
	}
	lead := "no instance leads"
	if s.Leader != "" {
		lead = s.Leader + " leads"
		if s.Release != "" {
			lead = s.Release + " leads"
		}
	}
	a.printf("%s  %s\n%s, %s, %d of %d workers busy, %d of %d schedules well", a.style.bold(namespace), verdict, lead,
		wording.Count(int64(s.Counts.Instances), "instance takes work", "instances take work"), s.Counts.Running, s.Counts.Workers, s.Counts.Well, s.Counts.Schedules)
	if len(s.Trouble) > 0 {
		a.printf("")
		t := a.table("", "WHAT", "NAME", "SINCE", "WHY", "MORE")
		for _, l := range s.Trouble {
			mark, paint := "✗", a.style.red
			if l.Warning {
				mark, paint = "!", a.style.yellow
			}
			name, since := l.Name, "-"
			if name == "" {
				name = "-"
			}
			if !l.Since.IsZero() {
				since = wording.Span(s.Asked.Sub(l.Since))
			}
			t.add(cell{mark, paint}, cell{l.Kind, paint}, cell{name, a.style.bold}, since, l.Text, cell{a.pasteable(l.Show), a.style.dim})
		}
		t.print(a.out)
	}
	if s.More > 0 {
		a.printf("and %d more", s.More)
	}
	for _, u := range s.CouldNotAsk {
		a.printf("%s", a.style.red(fmt.Sprintf("✗ could not ask %s: %s", u.Source, u.Error)))
	}
}
