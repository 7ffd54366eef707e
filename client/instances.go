package client

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/schedule"
)

// instances are the instances of a namespace behind an API.
type instances struct{ c *conn }

func (n *instances) List(ctx context.Context) (admin.InstanceList, error) {
	out := admin.InstanceList{}
	err := n.c.get(ctx, "/instances", nil, &out)
	out.Items = append([]admin.Instance{}, out.Items...)
	return out, err
}

func (n *instances) Promote(ctx context.Context, release string) (admin.Promoted, error) {
	out := admin.Promoted{Release: release}
	err := n.c.post(ctx, "/instances/promote", map[string]string{"release": release}, &out)
	return out, err
}

func (n *instances) Resign(ctx context.Context, id string) error { return n.ask(ctx, id, "resign") }

func (n *instances) Drain(ctx context.Context, id string) error { return n.ask(ctx, id, "drain") }

func (n *instances) ask(ctx context.Context, id, what string) error {
	if id == "" {
		return missing("instance")
	}
	return n.c.post(ctx, place("/instances/%s/"+what, id), nil, nil)
}

func (n *instances) Pause(ctx context.Context, d time.Duration, reason string) (admin.Pause, error) {
	body := map[string]any{"for": schedule.Duration(d)}
	if reason != "" {
		body["reason"] = reason
	}
	var out admin.Pause
	err := n.c.post(ctx, "/instances/pause", body, &out)
	return out, err
}

func (n *instances) Resume(ctx context.Context) error {
	return n.c.post(ctx, "/instances/resume", nil, nil)
}
