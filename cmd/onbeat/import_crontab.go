package main

import (
	"context"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/foreign"
)

type importCrontabCmd struct {
	File   string `arg:"" predict:"file" help:"The crontab; - is stdin."`
	System bool   `help:"A user stands before each command, as in /etc/crontab and /etc/cron.d."`
	importZone
	importFlags
}

// Help is shown by onbeat import crontab --help.
func (c *importCrontabCmd) Help() string {
	return "Each line becomes a schedule of the task exec, for which serve needs --allow-exec." + importHelp
}

// Run reads the crontab.
func (c *importCrontabCmd) Run(ctx context.Context, a *app) error {
	zone, err := c.zone(a.env)
	if err != nil {
		return err
	}
	name, data, err := a.readSettings(ctx, c.File)
	if err != nil {
		return err
	}
	return c.take(ctx, a, foreign.Crontab{Timezone: zone, System: c.System}.Read(name, data))
}
