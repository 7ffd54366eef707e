package onbeat

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/consumer"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/archiver"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/outbox"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// part is this process's part of one partition: a dispatcher of its own keys, with all that the packages below know. A namespace that is
// not split has one.
type part struct {
	d        *Dispatcher
	number   int // from 1
	q        *queue.Queue
	rdb      redis.UniversalClient // that of q
	own      *handlers.Mux         // of the dispatcher's own tasks
	producer *producer.Producer
	admin    *admin.Admin
	archive  *archive.Source   // nil: none
	observer PartitionObserver // nil: none

	// Set by prepare.
	scheduler *producer.Scheduler
	node      *instance.Manager
}

func (d *Dispatcher) newPart(rdb redis.UniversalClient, number int) (p *part, err error) {
	cfg := &d.cfg
	p = &part{d: d, number: number, own: handlers.NewMux()}
	place := queue.Partition{Namespace: cfg.Namespace}
	ids := producer.Config{
		Limits: task.Limits{Payload: cfg.PayloadLimit}, Check: d.checkPayload, Secret: cfg.Secret, TracerProvider: cfg.TracerProvider,
		CheckPlace: func(ctx context.Context, s *producer.Schedule) error { return d.producers.CheckSchedule(ctx, s) },
	}
	archived := cfg.Namespace
	if cfg.Partitions > 1 {
		place.Number, ids.NewID = number, split.Map{Partitions: cfg.Partitions}.IDs(number)
		archived = place.String()
	}
	if cfg.Archive != nil {
		if p.archive, err = archive.NewSource(cfg.Archive, archived, cfg.Log); err != nil {
			return nil, err
		}
	}
	if p.q, err = queue.New(rdb, place, cfg.caps()); err != nil {
		return nil, err
	}
	keys, err := seal.New(cfg.Encryption, cfg.Namespace)
	if err != nil {
		return nil, err
	}
	p.q.SealWith(keys)
	p.rdb = p.q.Client()
	if cfg.Observer != nil {
		if p.observer, err = cfg.Observer.Bind(p.rdb, cfg.Namespace); err != nil {
			return nil, err
		}
	}
	if p.producer, err = producer.New(p.rdb, cfg.Namespace, ids); err != nil {
		return nil, err
	}
	if p.admin, err = admin.New(p.rdb, cfg.Namespace, p.producer, p.archive); err != nil {
		return nil, err
	}
	return p, p.handleOwn()
}

// handleOwn registers the handlers of the dispatcher's own tasks.
func (p *part) handleOwn() error {
	cfg := &p.d.cfg
	bulk, err := admin.NewBulkHandler(p.rdb, cfg.Namespace, p.producer, cfg.Log)
	if err != nil {
		return err
	}
	if err := p.own.Handle(task.BulkType, bulk); err != nil {
		return err
	}
	if len(cfg.Notify) > 0 {
		h, err := notify.NewHandler(cfg.Notify, p.d.tellsOf(), p.q, cfg.Log)
		if err != nil {
			return err
		}
		if err := p.own.Handle(notify.Type, h); err != nil {
			return err
		}
	}
	return p.own.Handle(notify.HeartbeatType, notify.NewHeartbeatHandler(cfg.Heartbeat, p.heartbeatOf, p.d.tellsOf(), cfg.Log))
}

// free refuses a type of the dispatcher's own tasks.
func (p *part) free(typ string) error {
	if _, own := p.own.Handler(typ); own {
		return &task.FieldError{Field: "type", Value: typ, Reason: "already has a handler", Hint: "names that begin with " + task.Own + " are the dispatcher's"}
	}
	return nil
}

// Handler implements [consumer.Handlers].
func (p *part) Handler(typ string) (handlers.TaskHandler, bool) {
	if h, ok := p.d.mux.Handler(typ); ok {
		return h, true
	}
	return p.own.Handler(typ)
}

// Types implements [consumer.Handlers].
func (p *part) Types() []string { return append(p.d.mux.Types(), p.own.Types()...) }

// heartbeatOf returns the heartbeat of a schedule as it is now: URLs are in no task.
func (p *part) heartbeatOf(ctx context.Context, schedule string) (*producer.Heartbeat, error) {
	s, err := producer.NewSchedules(p.producer, nil).Get(ctx, schedule)
	return s.Schedule.Heartbeat, err
}

// declared returns the schedules of the partition that this release declares.
func (p *part) declared() []producer.Schedule {
	all := p.d.declared()
	if len(p.d.parts) == 1 || all == nil {
		return all
	}
	m := p.d.producers.Map()
	list := []producer.Schedule{}
	for i := range all {
		if m.Of(all[i].Name) == p.number {
			list = append(list, all[i])
		}
	}
	return list
}

// prepare makes the parts that run in the partition, and returns the function that runs them in a session.
func (p *part) prepare(own instance.Config, tasks consumer.Config) (serve func(*instance.Session) error, err error) {
	d, ns := p.d, p.d.cfg.Namespace
	if len(d.parts) > 1 {
		own.Log = own.Log.With().Int("partition", p.number).Logger()
	}
	if p.observer != nil {
		own.Observer = p.observer
	}
	if p.node, err = instance.New(p.rdb, ns, own); err != nil {
		return nil, err
	}
	log := own.Log.With().Str("instance", p.node.ID()).Logger()
	tasks.Log = log
	work, err := consumer.New(p.rdb, ns, p, tasks)
	if err != nil {
		return nil, err
	}
	if p.scheduler, err = producer.NewScheduler(p.rdb, ns, producer.SchedulerConfig{
		Horizon: 2 * p.node.Lease(), Declared: p.declared, Secret: d.cfg.Secret, Observer: p.observer, Log: log,
		TracerProvider: d.cfg.TracerProvider, Archive: p.archive,
	}); err != nil {
		return nil, err
	}
	if p.number == 1 { // one moves for all partitions
		if d.mover, err = p.mover(log); err != nil {
			return nil, err
		}
	}
	notifier, err := p.notifier(log)
	if err != nil {
		return nil, err
	}
	heart, err := notify.NewHeart(p.rdb, ns, notify.HeartConfig{
		Heartbeat: d.cfg.Heartbeat, Well: d.onBeat, Schedules: p.scheduler, Queue: queueOf(d.cfg.Queues), Log: log,
	})
	if err != nil {
		return nil, err
	}
	kept := producer.NewSchedules(p.producer, nil)
	return func(session *instance.Session) error {
		var g errgroup.Group
		g.Go(func() error { return p.scheduler.Run(session) })        // only the leader schedules
		g.Go(func() error { return kept.KeepHealth(session, heart) }) // only the leader notes how they went
		g.Go(func() error { return work.Run(session) })               // Redis decides which instance may take work
		g.Go(func() error { return d.move(session) })                 // every instance moves
		if d.cfg.Heartbeat.URL != "" && p.number == 1 {
			g.Go(func() error { return heart.Run(session) }) // only the leader's beats, and one of a namespace
		}
		if p.archive != nil {
			g.Go(func() error { return p.archiver(notifier, log).Run(session) }) // only the leader archives
		}
		if notifier != nil {
			g.Go(func() error { return notifier.Run(session) }) // only the leader notifies
		}
		return g.Wait()
	}, nil
}

// mover returns the mover of the outbox, or nil without an outbox.
func (p *part) mover(log zerolog.Logger) (*outbox.Mover, error) {
	if p.d.cfg.Outbox == nil {
		return nil, nil //nolint:nilnil // no outbox has no mover
	}
	cfg := outbox.MoverConfig{
		Database: p.d.cfg.Outbox, Redis: p.rdb, Namespace: p.d.cfg.Namespace, Producer: p.producer, Observer: p.d.cfg.Observer, Log: log,
	}
	if len(p.d.parts) > 1 {
		for _, other := range p.d.parts {
			cfg.Parts = append(cfg.Parts, outbox.Part{Redis: other.rdb, Producer: other.producer})
		}
		cfg.Where = p.d.producers.Where
	}
	return outbox.NewMover(cfg)
}

// archiver archives what happens while this instance leads. The notifier, nil if there is no target, hears how it goes.
func (p *part) archiver(n *notify.Notifier, log zerolog.Logger) *archiver.Archiver {
	cfg := archiver.Config{Observer: archiving{p.d.cfg.Observer, p.observer, n}, Log: log}
	if n != nil {
		cfg.Needed = n.Needed
	}
	return archiver.New(p.q, p.archive, cfg)
}

// notifier returns the notifier, which runs on the leader's side, or nil without targets.
func (p *part) notifier(log zerolog.Logger) (*notify.Notifier, error) {
	if len(p.d.cfg.Notify) == 0 {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	return notify.New(p.rdb, p.d.cfg.Namespace, notify.Config{
		Targets: p.d.cfg.Notify, Queue: queueOf(p.d.cfg.Queues), BehindFor: p.d.behindFor,
		Troubles: p.troubles, Log: log,
	})
}
