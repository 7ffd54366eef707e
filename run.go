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
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/consumer"
	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/store"
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
	d.begun.Store(true)
	if err := d.open(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	own := d.cfg.instance()
	own.Types = slices.Sorted(slices.Values(append(d.mux.Types(), d.parts[0].own.Types()...)))
	own.Queues = slices.Sorted(maps.Keys(d.cfg.Queues))
	tasks := d.cfg.consumer()
	tasks.Labels = labels(ctx)
	if len(d.parts) > 1 {
		own.ReadyCheck = together(own.ReadyCheck)
		own.ID, own.Order, tasks.Pool = uuid.Must(uuid.NewV7()).String(), &instance.Order{}, consumer.NewPool(own.Concurrency, len(d.parts))
	}
	d.moving = make(chan struct{}, 1)
	var serves []func(*instance.Session) error
	for _, p := range d.parts {
		serve, err := p.prepare(own, tasks)
		if err != nil {
			return err
		}
		serves = append(serves, serve)
	}
	d.mu.Lock()
	d.runs = true
	d.mu.Unlock()
	// If the instance leaves one partition, because a person asked it to drain or by an error, it leaves all of them.
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		d.producers.Keep(ctx, func(err error) { d.cfg.Log.Warn().Err(err).Msg("cannot ask redis for the partitions") })
		return nil
	})
	for i, p := range d.parts {
		all.Go(func() error {
			err := p.node.Run(ctx, serves[i])
			return cmp.Or(err, errDrained)
		})
	}
	if err := all.Wait(); !errors.Is(err, errDrained) {
		return err
	}
	return nil
}

// together is a check that partitions make at the same time: it runs once for all partitions that wait for it.
func together(check func(context.Context) error) func(context.Context) error {
	if check == nil {
		return nil
	}
	var calls singleflight.Group
	return func(ctx context.Context) error {
		select {
		case r := <-calls.DoChan("", func() (any, error) { return nil, check(ctx) }):
			return r.Err
		case <-ctx.Done(): // the check may be that of another partition, which goes on
			return context.Cause(ctx)
		}
	}
}

// errDrained says that the instance has left a partition, so that it leaves the others.
var errDrained = errors.New("the instance has left")

// open waits until Redis says that the namespace has as many partitions as this config, however long that takes.
func (d *Dispatcher) open(ctx context.Context) error {
	for waits := false; ; waits = true {
		err := d.producers.Open(ctx)
		if err == nil {
			if waits {
				d.cfg.Log.Info().Msg("redis answers again")
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.checkPlaces(d.schedules)
		}
		if ctx.Err() != nil {
			return nil
		}
		if !store.Retryable(err) {
			return err
		}
		if !waits {
			d.cfg.Log.Warn().Err(err).Msg("waiting for redis")
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil
		}
	}
}

// checkPlaces refuses schedules whose tasks would lie apart from the others of their type, if that has a limit.
func (d *Dispatcher) checkPlaces(list []producer.Schedule) error {
	var all []error
	for i := range list {
		if err := d.producers.CheckSchedule(context.Background(), &list[i]); err != nil {
			all = append(all, fmt.Errorf("schedule %q: %w", list[i].Name, err))
		}
	}
	return errors.Join(all...)
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

// move moves tasks of the outbox while the instance is registered and does not drain. With several partitions, one session does it for
// all, and another session once that one has ended.
func (d *Dispatcher) move(s *instance.Session) error {
	if d.mover == nil {
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
	select {
	case d.moving <- struct{}{}:
		defer func() { <-d.moving }()
		return d.mover.Run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// archiving tells the observer and the notifier how archiving goes. Each may be nil.
type archiving struct {
	observer Observer
	here     PartitionObserver
	notifier *notify.Notifier
}

// ArchiveBehind tells how many entries wait.
func (a archiving) ArchiveBehind(entries int64) {
	if a.here != nil {
		a.here.ArchiveBehind(entries)
	}
	if a.notifier != nil {
		a.notifier.ArchiveBehind(entries)
	}
}

// ArchiveLost tells of lost entries. The notifier reads of a loss in the events.
func (a archiving) ArchiveLost(entries int64) {
	if a.observer != nil {
		a.observer.ArchiveLost(entries)
	}
}

// queueOf is the queue in which messages wait: one that this instance, which leads, takes from. It is the default queue if that is
// one of them, else the one with the largest weight.
func queueOf(queues map[string]int) string {
	if _, ok := queues[task.DefaultQueue]; ok || len(queues) == 0 {
		return task.DefaultQueue
	}
	return slices.MaxFunc(slices.Sorted(maps.Keys(queues)), func(a, b string) int { return cmp.Compare(queues[a], queues[b]) })
}

// troubles returns the troubles of now that have a topic of their own. Only the status decides what is not well.
func (p *part) troubles(ctx context.Context) ([]notify.Trouble, error) {
	status, err := p.admin.Activity.Status(ctx)
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

// errUnasked says why no heartbeat is sent: a source that could not be asked does not count as well.
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
