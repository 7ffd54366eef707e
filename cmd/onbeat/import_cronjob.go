package main

import (
	"context"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/foreign"
)

type importCronJobCmd struct {
	Files    []string `arg:"" predict:"file" help:"YAML files with CronJobs, such as kubectl get cronjobs -o yaml writes; - is stdin."`
	Timezone string   `placeholder:"TZ" default:"UTC" help:"Zone of the controller, for CronJobs without timeZone (default ${default})."`
	importFlags
}

// Help is shown by onbeat import k8s-cronjob --help.
func (c *importCronJobCmd) Help() string {
	return "Each CronJob becomes a schedule of the task exec, which runs the command of its container; serve needs --allow-exec." + importHelp
}

// Run reads the files.
func (c *importCronJobCmd) Run(ctx context.Context, a *app) error {
	zone, err := (&importZone{c.Timezone}).zone(a.env)
	if err != nil {
		return err
	}
	var jobs foreign.Jobs
	for _, file := range c.Files {
		name, data, err := a.readSettings(ctx, file)
		if err != nil {
			return err
		}
		if err := jobs.CronJobs(name, data, zone); err != nil {
			return refuse("file", name, err.Error(), "name YAML of Kubernetes")
		}
	}
	return c.take(ctx, a, &jobs)
}
