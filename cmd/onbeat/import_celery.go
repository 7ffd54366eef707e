package main

import (
	"context"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/foreign"
)

type importCeleryCmd struct {
	File     string `arg:"" predict:"file" help:"The Python file that has beat_schedule, or what manage.py dumpdata django_celery_beat writes; - is stdin."`
	Timezone string `placeholder:"TZ" default:"UTC" help:"Zone of crontabs, where the file names none (default ${default})."`
	importFlags
}

// Help is shown by onbeat import celery-beat --help.
func (c *importCeleryCmd) Help() string {
	return "Each entry becomes a schedule whose tasks have the type of Celery's task, and {args, kwargs} as payload. It reads literals alone, and runs no Python." + importHelp
}

// Run reads the file.
func (c *importCeleryCmd) Run(ctx context.Context, a *app) error {
	zone, err := (&importZone{c.Timezone}).zone(a.env)
	if err != nil {
		return err
	}
	name, data, err := a.readSettings(ctx, c.File)
	if err != nil {
		return err
	}
	var jobs foreign.Jobs
	if err := jobs.Celery(name, data, zone); err != nil {
		return refuse("file", name, err.Error(), "name the module that sets beat_schedule, or a fixture")
	}
	return c.take(ctx, a, &jobs)
}
