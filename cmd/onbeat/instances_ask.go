package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

type instancesResignCmd struct {
	ID string `arg:"" help:"Whole ID of the instance, as onbeat instances prints it."`
}

// Help says how long it lasts.
func (*instancesResignCmd) Help() string {
	return "Another instance leads at once, and the one that resigned goes on taking work. It leads again only when no other instance " +
		"can, when its release is promoted and has no other candidate, or when its process is started anew."
}

// Asked is what onbeat instances resign and drain print as JSON.
type asked struct {
	ID string `json:"id"`
	// Leader is the instance that leads now, or "".
	Leader string `json:"leader"`
	// Left: the instance is not registered any more.
	Left bool `json:"left,omitempty"`
}

// Run asks an instance to resign.
func (c *instancesResignCmd) Run(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := cl.Instances.Resign(ctx, c.ID); err != nil {
		return cl.unasked(ctx, c.ID, err)
	}
	list, err := cl.Instances.List(ctx)
	if err != nil {
		return err
	}
	leads := leaderOf(&list)
	if a.JSON {
		return a.printJSON(asked{ID: c.ID, Leader: leads})
	}
	a.printf("%s %s: %s leads", a.style.green("resigned"), c.ID, dash(leads))
	return nil
}

func leaderOf(list *admin.InstanceList) string {
	if lead := list.Leader(); lead != nil {
		return lead.ID
	}
	return ""
}

type instancesDrainCmd struct {
	ID      string        `arg:"" help:"Whole ID of the instance, as onbeat instances prints it."`
	Wait    bool          `help:"Wait until the instance has finished its runs and left."`
	Timeout time.Duration `default:"5m" help:"How long --wait waits at most."`
}

// Help says what becomes of the process.
func (*instancesDrainCmd) Help() string {
	return "The instance takes no more work from now on, another one leads at once, and when its runs have ended (or its drain time " +
		"is over) its process ends as at SIGTERM. A supervisor that restarts the process starts a new instance."
}

// Run asks an instance to drain.
func (c *instancesDrainCmd) Run(ctx context.Context, a *app) error {
	if c.Timeout <= 0 {
		return refuse("timeout", c.Timeout.String(), "out of range", "above zero, for example 5m")
	}
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := cl.Instances.Drain(ctx, c.ID); err != nil {
		return cl.unasked(ctx, c.ID, err)
	}
	if c.Wait {
		return c.await(ctx, a, cl)
	}
	list, err := cl.Instances.List(ctx)
	if err != nil {
		return err
	}
	x := find(&list, c.ID)
	switch {
	case a.JSON:
		return a.printJSON(asked{ID: c.ID, Leader: leaderOf(&list), Left: x == nil})
	case x == nil:
		a.printf("%s %s: it has left", a.style.green("drained"), c.ID)
	default:
		a.printf("%s %s: it takes no more work, finishes %s and leaves", a.style.yellow("drains"), c.ID, wording.Count(x.Running, "run", "runs"))
	}
	return nil
}

// await waits until the instance has left. It asks through the admin interface only, and goes on while Redis is away.
func (c *instancesDrainCmd) await(ctx context.Context, a *app, cl *client) error {
	began := time.Now()
	w := &watch{client: cl, timeout: c.Timeout, progress: a.progress()}
	var last *admin.Instance
	list, err := w.list(ctx, a, func(list *admin.InstanceList) string {
		if x := find(list, c.ID); x != nil {
			last = x
			return fmt.Sprintf("%s drains, with %s left", c.ID, wording.Count(x.Running, "run", "runs"))
		}
		return ""
	})
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.printJSON(asked{ID: c.ID, Leader: leaderOf(list), Left: true})
	case last != nil && last.LeaseLeft() <= 0:
		a.printf("%s %s after %s: its lease ran out while it drained, and its runs are taken back", a.style.yellow("lost"), c.ID, wording.Span(time.Since(began)))
	default:
		a.printf("%s %s after %s: it has left", a.style.green("drained"), c.ID, wording.Span(time.Since(began)))
	}
	return nil
}

func find(list *admin.InstanceList, id string) *admin.Instance {
	i := slices.IndexFunc(list.Items, func(i admin.Instance) bool { return i.ID == id })
	if i < 0 {
		return nil
	}
	return &list.Items[i]
}

// unasked adds to the error of a request what a person can do. A part of an ID is never taken for the whole: it may fit
// another instance by the time the request arrives.
func (c *client) unasked(ctx context.Context, id string, err error) error {
	switch {
	case errors.Is(err, instance.ErrNoOther):
		return &failure{err, "start another instance, or wait until one is ready: onbeat instances --wait ready=2"}
	case !errors.Is(err, task.ErrNotFound):
		return err
	}
	var known, like []string
	list, _ := c.Instances.List(ctx)
	for _, i := range list.Items {
		known = append(known, i.ID)
		if strings.HasPrefix(i.ID, id) || strings.HasSuffix(i.ID, id) {
			like = append(like, i.ID)
		}
	}
	hint := "no instance is registered"
	switch {
	case len(like) > 0:
		hint = "write the whole ID: " + strings.Join(like, ", ")
	case len(known) > 0:
		hint = "known: " + strings.Join(known, ", ")
	}
	return &failure{fmt.Errorf("instance %q: not registered", id), hint}
}
