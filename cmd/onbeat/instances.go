package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/wording"
)

type instancesCmd struct {
	List    instancesListCmd    `cmd:"" default:"withargs" help:"List the instances: which one leads, which ones work, and since when."`
	Resign  instancesResignCmd  `cmd:"" help:"Make an instance give up the lead, and work on."`
	Drain   instancesDrainCmd   `cmd:"" help:"Make an instance finish its runs and leave, as SIGTERM does."`
	Promote instancesPromoteCmd `cmd:"" help:"Make a release the newest, as if it had been rolled out now."`
	Pause   instancesPauseCmd   `cmd:"" help:"Pause all instances for a planned failover of Redis: no instance begins a task."`
	Resume  instancesResumeCmd  `cmd:"" help:"End a pause before its time."`
}

type instancesListCmd struct {
	Wait    readyCount    `placeholder:"ready=N" help:"Wait until N instances are ready, then list them."`
	Release *string       `placeholder:"R" help:"With --wait: count only instances of this release. Default: any."`
	Timeout time.Duration `default:"5m" help:"How long --wait waits at most."`
}

// Help says what --wait is for.
func (*instancesListCmd) Help() string {
	return "--wait is for a pipeline that goes on when a new release is up. It tries again while Redis is away, and exits with 1, and " +
		"says what is missing, when the time is over."
}

// Run lists the instances, the newest first.
func (c *instancesListCmd) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	w := &watch{timeout: c.Timeout, progress: a.progress()}
	defer w.Close()
	if c.Wait == 0 {
		list, err := w.look(ctx, a)
		if err != nil {
			return err
		}
		return c.print(a, w.client, list)
	}
	list, err := w.list(ctx, a, func(list *admin.InstanceList) string { return unready(list, int(c.Wait), c.Release) })
	if err != nil {
		return err
	}
	return c.print(a, w.client, list)
}

func (c *instancesListCmd) check() error {
	switch {
	case c.Timeout <= 0:
		return refuse("timeout", c.Timeout.String(), "out of range", "above zero, for example 5m")
	case c.Wait == 0 && c.Release != nil:
		return refuse("release", *c.Release, "goes with --wait only", "for example --wait ready=2 --release "+*c.Release)
	}
	return nil
}

// print prints the list as JSON or as a table.
func (c *instancesListCmd) print(a *app, cl *client, list *admin.InstanceList) error {
	if a.JSON {
		return errors.Join(a.printJSON(list), lacking(list.CouldNotAsk))
	}
	if len(list.Items) == 0 && len(list.CouldNotAsk) == 0 {
		a.printf("no instances in %s (start one with onbeat serve)", cl.namespace)
		return nil
	}
	t := a.table("ID", "RELEASE", "STATE", "LEADER", "LEASE LEFT", "RUNNING", "HOST:PID", "UPTIME")
	for _, i := range list.Items {
		state, leader := i.State, ""
		if left := i.ProbationLeft(); left > 0 {
			state = "on probation, " + wording.Span(left) + " left"
		}
		if i.Standby {
			state += ", standby"
		}
		if i.Resigned {
			state += ", resigned"
		}
		if i.Suspected {
			state += ", suspected"
		}
		switch {
		case i.Leader && i.LeaseLeftMS <= 0:
			leader = fmt.Sprintf("led, epoch %d", i.Epoch)
		case len(i.Leads) > 0:
			leader = "leads " + wording.Count(int64(len(i.Leads)), "partition", "partitions")
		case i.Leader:
			leader = fmt.Sprintf("leads, epoch %d", i.Epoch)
		}
		running := fmt.Sprint(i.Running)
		if i.Concurrency > 0 {
			running += fmt.Sprintf(" of %d", i.Concurrency)
		}
		t.add(i.ID, dash(i.Release), state, cell{leader, a.style.green}, leaseLeft(a, i.LeaseLeft()), running,
			fmt.Sprintf("%s:%d", i.Host, i.PID), wording.Span(list.Now.Sub(i.Started)))
	}
	t.print(a.out)
	if until := list.PausedUntil; !until.IsZero() {
		a.printf("%s until %s (%s left)%s: no instance begins a task; onbeat instances resume ends the pause", a.style.yellow("paused"),
			until.Format(time.RFC3339), wording.Span(until.Sub(list.Now)), because(list.PauseReason))
	}
	switch {
	case list.Leader() == nil:
		a.printf("no instance leads%s", list.Leaderless())
	case len(list.LeaderlessParts) > 0:
		a.printf("no instance leads %s%s", partitionsText(list.LeaderlessParts), list.Leaderless())
	}
	return lacking(list.CouldNotAsk)
}

// because returns the reason of a pause, to stand behind the words that tell of the pause.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ", because: " + oneCell(reason)
}

func leaseLeft(a *app, left time.Duration) cell {
	if left <= 0 {
		return cell{"ran out", a.style.red}
	}
	return cell{text: wording.Span(left)}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
