package onbeat

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
			if run, ok := strings.CutPrefix(l.Show, "onbeat tasks show "); ok {
				x.Text += ": " + run
			}
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

// errUnasked says why no heartbeat is sent: what could not be asked is not well.
var errUnasked = errors.New("could not ask")

// offBeat returns what stops the heartbeat of the dispatcher, or nil. A fault of one job does not stop it, nor does a task that a caller
// enqueued and that no instance handles: then any caller could.
func offBeat(s *admin.Status) error {
	for _, u := range s.CouldNotAsk {
		return fmt.Errorf("%w %s: %s", errUnasked, u.Source, u.Error)
	}
	for i := range s.Trouble {
		switch l := &s.Trouble[i]; l.Kind {
		case admin.NoLeader, admin.LeaderIdle, admin.WorkersBusy, admin.InstanceIdle, string(admin.Overdue), string(admin.Unhandled):
			if !l.Warning && !l.Busy() && (l.Kind != string(admin.Unhandled) || l.Schedule() != "") {
				return fmt.Errorf("%s %s: %s", l.Kind, l.Name, l.Text) //nolint:err113 // for the log alone
			}
		}
	}
	return nil
}

func (d *Dispatcher) onBeat(ctx context.Context) error {
	status, err := d.admin.Activity.Status(ctx)
	if err != nil {
		return err
	}
	return offBeat(&status)
}
