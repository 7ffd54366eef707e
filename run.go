package onbeat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/consumer"
	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/archiver"
	"github.com/onbeat/onbeat/outbox"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// Run works until ctx ends, or until a person asks this instance to drain. Then it resigns, so that another instance leads at once, and lets running tasks finish for as
// long as Config.Drain, or until Config.Hurry. It hands back the rest and returns nil. While Redis is unreachable, it
// waits. Run returns an error if a registration was refused, if a schedule's type has no handler here, or if Redis refuses this client. Call it once.
func (d *Dispatcher) Run(ctx context.Context) error {
	d.mu.Lock()
	bad := errors.Join(d.bad, d.checkHandled(d.schedules))
	d.mu.Unlock()
	if bad != nil {
		return bad
	}
	own := d.cfg.instance()
	own.Types = d.mux.Types()
	own.Queues = slices.Sorted(maps.Keys(d.cfg.Queues))
	node, err := instance.New(d.rdb, d.cfg.Namespace, own)
	if err != nil {
		return err
	}
	log := d.cfg.Log.With().Str("instance", node.ID()).Logger()
	tasks := d.cfg.consumer()
	tasks.Log, tasks.Labels = log, labels(ctx)
	work, err := consumer.New(d.rdb, d.cfg.Namespace, d.mux, tasks)
	if err != nil {
		return err
	}
	schedules, err := producer.NewScheduler(d.rdb, d.cfg.Namespace, producer.SchedulerConfig{
		Horizon: 2 * node.Lease(), Declared: d.declared, Secret: d.cfg.Secret, Observer: d.cfg.Observer, Log: log,
		TracerProvider: d.cfg.TracerProvider, Archive: d.archive,
	})
	if err != nil {
		return err
	}
	mover, err := d.mover(log)
	if err != nil {
		return err
	}
	notifier, err := d.notifier(log)
	if err != nil {
		return err
	}
	heart, err := notify.NewHeart(d.rdb, d.cfg.Namespace, notify.HeartConfig{
		Heartbeat: d.cfg.Heartbeat, Well: d.onBeat, Schedules: schedules, Queue: queueOf(d.cfg.Queues), Log: log,
	})
	if err != nil {
		return err
	}
	kept := producer.NewSchedules(d.producer, nil)
	d.mu.Lock()
	d.scheduler, d.node = schedules, node
	d.mu.Unlock()

	return node.Run(ctx, func(session *instance.Session) error {
		var g errgroup.Group
		g.Go(func() error { return schedules.Run(session) })          // only the leader schedules
		g.Go(func() error { return kept.KeepHealth(session, heart) }) // only the leader notes how they went
		g.Go(func() error { return work.Run(session) })               // Redis decides which instance may take work
		g.Go(func() error { return move(mover, session) })            // every instance moves
		if d.cfg.Heartbeat.URL != "" {
			g.Go(func() error { return heart.Run(session) }) // only the leader's beats
		}
		if d.archive != nil {
			g.Go(func() error { return d.archiver(notifier, log).Run(session) }) // only the leader archives
		}
		if notifier != nil {
			g.Go(func() error { return notifier.Run(session) }) // only the leader notifies
		}
		return g.Wait()
	})
}

// labels are the pprof labels of the context that Run got: handlers run under them too.
func labels(ctx context.Context) pprof.LabelSet {
	var list []string
	pprof.ForLabels(ctx, func(name, value string) bool {
		list = append(list, name, value)
		return true
	})
	return pprof.Labels(list...)
}

// mover returns what moves the tasks of the outbox, or nil without one.
func (d *Dispatcher) mover(log zerolog.Logger) (*outbox.Mover, error) {
	if d.cfg.Outbox == nil {
		return nil, nil //nolint:nilnil // no outbox has no mover
	}
	return outbox.NewMover(outbox.MoverConfig{
		Database: d.cfg.Outbox, Redis: d.rdb, Namespace: d.cfg.Namespace, Producer: d.producer, Observer: d.cfg.Observer, Log: log,
	})
}

// move moves tasks while the instance is registered and does not drain.
func move(m *outbox.Mover, s *instance.Session) error {
	if m == nil {
		return nil
	}
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	go func() {
		select {
		case <-s.Draining():
			stop()
		case <-ctx.Done():
		}
	}()
	return m.Run(ctx)
}

// archiver archives what happens while this instance leads. The notifier, nil if there is no target, hears how it goes.
func (d *Dispatcher) archiver(n *notify.Notifier, log zerolog.Logger) *archiver.Archiver {
	cfg := archiver.Config{Observer: archiving{d.cfg.Observer, n}, Log: log}
	if n != nil {
		cfg.Needed = n.Needed
	}
	return archiver.New(d.q, d.archive, cfg)
}

// archiving tells the observer and the notifier how archiving goes. Each may be nil.
type archiving struct {
	observer archiver.Observer
	notifier *notify.Notifier
}

// ArchiveBehind implements [Observer].
func (a archiving) ArchiveBehind(entries int64) {
	if a.observer != nil {
		a.observer.ArchiveBehind(entries)
	}
	if a.notifier != nil {
		a.notifier.ArchiveBehind(entries)
	}
}

// ArchiveLost implements [Observer]. The notifier reads of a loss in the events.
func (a archiving) ArchiveLost(entries int64) {
	if a.observer != nil {
		a.observer.ArchiveLost(entries)
	}
}

// notifier returns what runs on the leader's side, or nil without targets.
func (d *Dispatcher) notifier(log zerolog.Logger) (*notify.Notifier, error) {
	if len(d.cfg.Notify) == 0 {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	return notify.New(d.rdb, d.cfg.Namespace, notify.Config{
		Targets: d.cfg.Notify, Queue: queueOf(d.cfg.Queues), BehindFor: d.behindFor,
		Troubles: d.troubles, Log: log,
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
