package main

import (
	"context"
	"os"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/foreign"
)

type importSystemdCmd struct {
	Dir string `arg:"" predict:"file" help:"Folder with the timers and their services, such as /etc/systemd/system."`
	importZone
	importFlags
}

// Help is shown by onbeat import systemd-timers --help.
func (c *importSystemdCmd) Help() string {
	return "Each OnCalendar or OnUnitActiveSec of a .timer becomes a schedule of the task exec, which runs ExecStart of the service; serve needs --allow-exec." + importHelp
}

// Run reads the units.
func (c *importSystemdCmd) Run(ctx context.Context, a *app) error {
	zone, err := c.zone(a.env)
	if err != nil {
		return err
	}
	if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
		return refuse("dir", c.Dir, "no folder that can be read", "name the folder that has the .timer files")
	}
	var jobs foreign.Jobs
	if err := jobs.Timers(c.Dir, zone); err != nil {
		return err
	}
	if len(jobs.Schedules())+len(jobs.Notes) == 0 { // each timer is one of the two
		return refuse("dir", c.Dir, "no .timer in it", "name the folder that has the .timer files, such as /etc/systemd/system")
	}
	return c.take(ctx, a, &jobs)
}
