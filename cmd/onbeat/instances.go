package main

import (
	"context"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/instance"
)

type instancesCmd struct {
	List    instancesListCmd    `cmd:"" default:"1" help:"List the instances: which one leads, which work, since when."`
	Promote instancesPromoteCmd `cmd:"" help:"Make a release the newest, as if it had been rolled out now."`
	Pause   instancesPauseCmd   `cmd:"" help:"Begin no task for a while, for a planned failover of Redis."`
	Resume  instancesResumeCmd  `cmd:"" help:"End a pause before its time."`
}

type instancesListCmd struct{}

// instanceLine adds to an instance what is left of its lease.
type instanceLine struct {
	instance.Info
	LeaseMS     int64 `json:"lease_left_ms"`
	ProbationMS int64 `json:"probation_left_ms,omitempty"`
}

// Run lists the instances, the newest first.
func (c *instancesListCmd) Run(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	list, err := cl.Instances().List(ctx)
	if err != nil {
		return err
	}
	now, err := cl.Queue().Now(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		var lines []instanceLine
		for _, i := range list {
			lines = append(lines, instanceLine{i, i.Lease.Milliseconds(), i.Probation.Milliseconds()})
		}
		return a.printJSON(listOf(lines, ""))
	}
	if len(list) == 0 {
		a.printf("no instances in %s (start one with onbeat serve)", cl.cfg.Namespace)
		return nil
	}
	t := a.table("ID", "RELEASE", "STATE", "LEADER", "LEASE LEFT", "RUNNING", "HOST:PID", "UPTIME")
	for _, i := range list {
		state, leader := i.State, ""
		if i.Probation > 0 {
			state = "on probation, " + span(i.Probation) + " left"
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
		t.add(i.ID, dash(i.Release), state, cell{leader, a.style.green}, leaseLeft(a, i.Lease), running,
			fmt.Sprintf("%s:%d", i.Host, i.PID), span(now.Sub(i.Started)))
	}
	t.print(a.out)
	if until, left, err := cl.Instances().Paused(ctx); err == nil && left > 0 {
		a.printf("%s until %s (%s yet): no instance begins a task; onbeat instances resume ends it", a.style.yellow("paused"),
			until.Format(time.RFC3339), span(left))
	}
	if since := cl.leaderless(ctx, list, now); since != "" {
		a.printf("no instance leads%s", since)
	}
	return nil
}

func leaseLeft(a *app, left time.Duration) cell {
	if left <= 0 {
		return cell{"ran out", a.style.red}
	}
	return cell{text: span(left)}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
