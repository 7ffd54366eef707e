package onbeat

import (
	"context"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/handlers/notify"
)

// troubles returns what is not well now and has a topic of its own, from the one place that decides it: the status.
func (d *Dispatcher) troubles(ctx context.Context) ([]notify.Trouble, error) {
	status, err := d.admin.Activity.Status(ctx)
	var list []notify.Trouble
	for i := range status.Trouble {
		l := &status.Trouble[i]
		x := notify.Trouble{Schedule: l.Schedule(), Since: l.Since, Text: l.Text}
		switch l.Kind {
		case admin.WorkersBusy, string(admin.Hung):
			x.Topic = notify.Hung
		case string(admin.Unhandled):
			x.Topic = notify.Unhandled
			if x.Schedule == "" {
				x.Type = l.Name
			}
		case string(admin.Paused):
			if x.Schedule == "" {
				continue // a person paused all instances, for minutes
			}
			x.Topic = notify.Paused
		case admin.LostWrites:
			x.Topic = notify.Lost
		default:
			continue
		}
		list = append(list, x)
	}
	return list, err
}
