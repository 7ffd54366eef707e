package main

import (
	"context"
	"fmt"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/foreign"
	"github.com/onbeat/onbeat/internal/wording"
)

type importCmd struct {
	Crontab importCrontabCmd `cmd:"" help:"Read a crontab."`
	Systemd importSystemdCmd `cmd:"" name:"systemd-timers" help:"Read timers of systemd."`
	CronJob importCronJobCmd `cmd:"" name:"k8s-cronjob" help:"Read CronJobs of Kubernetes."`
	Asynq   importAsynqCmd   `cmd:"" help:"Read the schedulers of asynq, and move its tasks."`
	Celery  importCeleryCmd  `cmd:"" name:"celery-beat" help:"Read the schedule of Celery beat."`
}

// importFlags are those of each source.
type importFlags struct {
	Apply   bool `help:"Make the schedules in the namespace, as schedules apply does, in place of printing a config."`
	DryRun  bool `help:"Show what --apply would make or change. Write nothing."`
	SkipBad bool `help:"With --apply, take the other jobs if some are left out."`
}

// importHelp is the end of the help of each source.
const importHelp = " Prints a config with a schedule for each job. Names on stderr each construct that onbeat has otherwise, and each job that it " +
	"leaves out; exits with 1 if it leaves out any. A job keeps its habits: no retries, and no run for a slot that nobody could run, where it had none."

// take prints or applies what was read.
func (f *importFlags) take(ctx context.Context, a *app, jobs *foreign.Jobs) error {
	for i := range jobs.Notes {
		n, before := &jobs.Notes[i], ""
		if !n.Left {
			before = "note: "
		}
		fmt.Fprintf(a.err, "onbeat: %s%s\n", before, n)
	}
	left := jobs.Left()
	if (f.Apply || f.DryRun) && left > 0 && !f.SkipBad {
		return &failure{fmt.Errorf("nothing was applied: %s left out", wording.Count(int64(left), "job is", "jobs are")), "take the others with --skip-bad"}
	}
	if err := f.give(ctx, a, jobs); err != nil {
		return err
	}
	if left > 0 {
		return errSaid
	}
	return nil
}

func (f *importFlags) give(ctx context.Context, a *app, jobs *foreign.Jobs) error {
	switch {
	case f.Apply || f.DryRun:
		file, err := config.Parse("import", jobs.YAML(""), a.env)
		if err != nil {
			return err
		}
		return a.takeSchedules(ctx, file, f.DryRun)
	case len(jobs.List) == 0 && !a.JSON: // a config without schedules would retire those that are there
		fmt.Fprintln(a.err, "onbeat: note: no job comes over, so no config is printed")
		return nil
	case a.JSON:
		return a.printJSON(struct {
			Schedules any            `json:"schedules"`
			Notes     []foreign.Note `json:"notes"`
		}{jobs.Schedules(), append([]foreign.Note{}, jobs.Notes...)})
	}
	_, err := a.out.Write(jobs.YAML(a.Namespace))
	return err
}
