package onbeat

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/task"
)

// handleNotify registers the handler of the tasks that send messages, if there are targets.
func (d *Dispatcher) handleNotify() error {
	if len(d.cfg.Notify) == 0 {
		return nil
	}
	var observer notify.Observer
	if d.cfg.Observer != nil {
		observer = d.cfg.Observer
	}
	h, err := notify.NewHandler(d.cfg.Notify, observer, d.q, d.cfg.Log)
	if err != nil {
		return err
	}
	return d.mux.Handle(notify.Type, h)
}

// notifier returns what runs on the leader's side, or nil without targets.
func (d *Dispatcher) notifier(log zerolog.Logger) (*notify.Notifier, error) {
	if len(d.cfg.Notify) == 0 {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	return notify.New(d.rdb, d.cfg.Namespace, notify.Config{
		Targets: d.cfg.Notify, Queue: queueOf(d.cfg.Queues), BehindFor: d.behindFor,
		Log: log,
	})
}

// queueOf is the queue in which messages wait: one that this instance, which leads, takes from. It is the default queue if that is
// one of them, else the one with the largest weight.
func queueOf(queues map[string]int) string {
	if _, ok := queues[task.DefaultQueue]; ok || len(queues) == 0 {
		return task.DefaultQueue
	}
	return slices.MaxFunc(slices.Sorted(maps.Keys(queues)), func(a, b string) int { return cmp.Compare(queues[a], queues[b]) })
}
