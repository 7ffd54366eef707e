package main

import (
	"context"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/internal/wording"
)

type instancesCmd struct {
	List    instancesListCmd    `cmd:"" default:"1" help:"List the instances: which one leads, which ones work, and since when."`
	Promote instancesPromoteCmd `cmd:"" help:"Make a release the newest, as if it had been rolled out now."`
	Pause   instancesPauseCmd   `cmd:"" help:"Let no instance begin a task for a while, for a planned failover of Redis."`
	Resume  instancesResumeCmd  `cmd:"" help:"End a pause before its time."`
}

type instancesListCmd struct{}

// Run lists the instances, the newest first.
func (c *instancesListCmd) Run(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	list, err := cl.Instances.List(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.printJSON(list)
	}
	if len(list.Items) == 0 {
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
		if i.Leader {
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
		a.printf("%s until %s (%s left): no instance begins a task; onbeat instances resume ends the pause", a.style.yellow("paused"),
			until.Format(time.RFC3339), wording.Span(until.Sub(list.Now)))
	}
	if list.Leader() == nil {
		a.printf("no instance leads%s", list.Leaderless())
	}
	return nil
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
