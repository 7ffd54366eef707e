package main

import (
	"context"
	"fmt"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

type tasksListCmd struct {
	State    string `placeholder:"S" values:"due,running,dead,done" help:"due, running, dead or done. Default: each."`
	Queue    string `placeholder:"Q" help:"Only of this queue."`
	Type     string `placeholder:"T" help:"Only of this type."`
	Schedule string `placeholder:"NAME" predict:"schedule" help:"Only of this schedule."`
	Limit    int    `default:"100" placeholder:"N" help:"Most tasks, up to 1000. Default 100."`
	After    string `placeholder:"CURSOR" help:"Go on where the page before ended; needs --state."`
}

// Run lists tasks.
func (c *tasksListCmd) Run(ctx context.Context, a *app) error {
	states, err := c.states()
	if err != nil {
		return err
	}
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	page, err := c.page(ctx, cl, states)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.printJSON(page)
	}
	return c.print(ctx, a, cl, page)
}

func (c *tasksListCmd) states() ([]task.State, error) {
	if c.Limit < 1 || c.Limit > 1000 {
		return nil, refuse("limit", fmt.Sprint(c.Limit), "out of range", "1 to 1000; go on with --after")
	}
	if c.State == "" {
		if c.After != "" {
			return nil, refuse("after", c.After, "without a state", "say which list to go on with: --state due")
		}
		return []task.State{task.Running, task.Due, task.Dead, task.Done}, nil
	}
	s, err := task.ParseState(c.State)
	return []task.State{s}, err
}

func (c *tasksListCmd) page(ctx context.Context, cl *client, states []task.State) (listing[taskLine], error) {
	page := listOf[taskLine](nil, "")
	for _, s := range states {
		left := c.Limit - len(page.Items)
		if left == 0 {
			break
		}
		p, err := cl.Queue().List(ctx, s, queue.ListOptions{
			Queue: c.Queue, Type: c.Type, Schedule: c.Schedule, Limit: left, After: c.After,
		})
		if err != nil {
			return page, err
		}
		for i := range p.Tasks {
			page.Items = append(page.Items, lineOfTask(&p.Tasks[i]))
		}
		if len(states) == 1 {
			page.Next = p.Next
		}
	}
	return page, nil
}

func (c *tasksListCmd) print(ctx context.Context, a *app, cl *client, page listing[taskLine]) error {
	n, err := cl.Queue().Counts(ctx)
	if err != nil {
		return err
	}
	if len(page.Items) > 0 {
		t := a.table("ID", "TYPE", "STATE", "WHEN", "ATTEMPTS", "QUEUE", "NOTE")
		for i := range page.Items {
			l := &page.Items[i]
			t.add(l.ID, l.Type, cell{string(l.State), a.stateStyle(l.State)}, l.when(n.Now), l.attempts(), l.Queue,
				cell{l.note(), a.style.dim})
		}
		t.print(a.out)
		a.printf("")
	}
	a.printf("%s", a.style.dim(fmt.Sprintf("%d due (%d overdue, %d held), %d running, %d dead, %d done and kept",
		n.Due+n.Held, n.Overdue, n.Held, n.Running, n.Dead, n.Done)))
	if page.Next != "" {
		a.printf("%s", a.style.dim("more: --after "+page.Next))
	}
	return nil
}

// note is the last error, or who runs it.
func (l *taskLine) note() string {
	if l.Unreadable != "" {
		return clip(wording.OneLine(l.Unreadable), 80)
	}
	if l.State == task.Running {
		return "on " + l.Instance
	}
	if n := len(l.Failures); n > 0 && l.State != task.Done {
		return clip(wording.OneLine(l.Failures[n-1].Error), 80)
	}
	return ""
}

// clip cuts text to so many characters.
func clip(s string, limit int) string {
	r := []rune(s)
	if len(r) <= limit {
		return s
	}
	return string(r[:limit-1]) + "…"
}
