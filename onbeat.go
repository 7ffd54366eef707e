// Package onbeat keeps fixed-cadence jobs on the beat through every deploy: a central, time-based task dispatcher on a
// Redis sorted set.
//
// A [Dispatcher] is the entry point. Register handlers and schedules, then call Run in every process. The newest instance
// leads: it turns schedules into tasks, and works. The others stand by. A rolling update, a crash or a restart moves no
// slot, drops none and runs none twice by mistake.
//
//	d, err := onbeat.New(rdb, onbeat.Config{Namespace: "billing", Release: version})
//	d.Handle("invoice.send", handlers.Typed(func(ctx context.Context, inv Invoice) error { ... }))
//	d.Schedule("nightly-report", schedule.Cron("0 2 * * *", seoul), "report.build", Report{Day: "yesterday"})
//	id, err := d.Enqueue(ctx, task.New("invoice.send", inv), task.In(10*time.Minute), task.Unique("inv-42", time.Hour))
//	err = d.Run(ctx) // until ctx ends; then resigns, drains, returns
//
// Delivery is at least once. Each run carries its slot, its attempt and a rising fencing token, so that a handler can make
// its effect exactly once. Dispatcher wires packages of their own. Data flows through them one way: schedule, producer,
// queue, consumer, handlers, with instance at both ends.
package onbeat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/outbox"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Dispatcher is one process's part of a namespace. Register handlers and schedules first, then call Run. Enqueue at any
// time.
type Dispatcher struct {
	cfg       Config
	mux       *handlers.Mux
	parts     []*part // one for each partition
	producers *split.Producers
	admin     *admin.Admin // of all

	behindFor time.Duration // notify.Config.BehindFor; tests shorten it

	mu        sync.Mutex
	schedules []producer.Schedule
	leaves    bool          // nothing is declared: stored schedules stay as they are
	runs      bool          // Run was called, and goes on or has ended
	begun     atomic.Bool   // Run was called, and nothing was wrong with the config
	mover     *outbox.Mover // nil: none
	moving    chan struct{} // held by the session that moves
	bad       error         // the errors of refused registrations
}

// New returns a dispatcher on a Redis client, which the caller closes. It refuses an invalid config with a
// [*task.FieldError]. It does not talk to Redis yet.
func New(rdb redis.UniversalClient, cfg Config) (*Dispatcher, error) {
	if isNil(rdb) {
		return nil, &task.FieldError{Field: "rdb", Reason: "is nil", Hint: "pass the client of Dial or redis.NewClient, and check its error first"}
	}
	if err := cfg.setLog(); err != nil {
		return nil, err
	}
	if err := store.Durability(cfg.Durability).ValidateFor(rdb); err != nil {
		return nil, field.In("durability", err)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	durable := store.Durable(rdb, cfg.durability())
	if cfg.Observer != nil {
		durable = store.Observed(durable, cfg.Observer)
	}
	d := &Dispatcher{cfg: cfg, mux: handlers.NewMux()}
	var producers []*producer.Producer
	var admins []*admin.Admin
	for i := range max(cfg.Partitions, 1) {
		p, err := d.newPart(durable, i+1)
		if err != nil {
			return nil, err
		}
		d.parts, producers, admins = append(d.parts, p), append(producers, p.producer), append(admins, p.admin)
	}
	d.producers = split.NewProducers(func(ctx context.Context) ([]string, error) {
		if len(producers) == 1 {
			return nil, queue.Unsplit(ctx, durable, cfg.Namespace)
		}
		return queue.Split(ctx, durable, cfg.Namespace, len(producers), slices.Sorted(maps.Keys(cfg.Limits))...)
	}, producers)
	d.admin = admin.Join(d.producers, admins)
	return d, nil
}

// isNil reports whether a client is nil. It may be a nil *redis.Client, if the caller ignored the error of a constructor.
func isNil(rdb redis.UniversalClient) bool {
	v := reflect.ValueOf(rdb)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// checkPayload asks the type's handler, if this process has one. Other instances may handle types that this one does not.
func (d *Dispatcher) checkPayload(t *task.Task) error {
	if _, ok := d.mux.Handler(t.Type); !ok {
		return nil
	}
	err := handlers.Hide(t, d.mux.CheckPayload(t.Type, t.Payload))
	if p, ok := errors.AsType[*handlers.PanicError](err); ok {
		d.cfg.Log.Error().Err(err).Str("type", t.Type).Bytes("stack", p.Stack).Msg("the check of a payload panicked: the payload is refused")
	}
	return err
}

// Handle registers the handler of a type. If the handler says its schedule (see [handlers.Scheduled]), Handle declares that
// schedule, under the name of the type. If Handle refuses, it returns the error, and Run returns it again.
func (d *Dispatcher) Handle(typ string, h handlers.TaskHandler) error {
	err := d.parts[0].free(typ)
	if err == nil {
		err = d.mux.Handle(typ, h)
	}
	if err != nil {
		return d.refuse(fmt.Errorf("handle %q: %w", typ, err))
	}
	s, ok := handlers.As[handlers.Scheduled](h)
	if !ok {
		return nil
	}
	var payload any
	if p, ok := handlers.As[handlers.WithPayload](h); ok {
		payload = p.Payload()
	}
	return d.Schedule(typ, s.Schedule(), typ, payload)
}

// Use wraps the handlers registered so far and from now on in middleware, the first outermost.
func (d *Dispatcher) Use(mw ...handlers.Middleware) {
	d.mux.Use(mw...)
	for _, p := range d.parts {
		p.own.Use(mw...)
	}
}

// Schedule declares a schedule: each slot of the rule becomes a task of the type, with the payload and the options (queue,
// priority, timeout, attempts, backoff, secret). The schedule belongs to this release. When a newer release leads that does not
// declare it, it is retired. If Schedule refuses, it returns the error, and Run returns it again.
//
// Handle may register the type's handler later. Run refuses a schedule whose type has none; if another program has it, declare
// the schedule by [Dispatcher.Declare], with Elsewhere.
func (d *Dispatcher) Schedule(name string, rule schedule.Rule, typ string, payload any, opts ...task.Option) error {
	t := task.New(typ, payload, opts...)
	s := producer.Schedule{
		Name: name, Rule: rule, Task: typ, Payload: t.Payload, Secret: t.Secret,
		Queue: t.Queue, Priority: t.Priority, Timeout: t.Timeout, MaxAttempts: t.MaxAttempts, Backoff: t.Backoff,
	}
	err := t.Validate(task.Limits{Payload: d.cfg.PayloadLimit})
	if err == nil && (t.ID != "" || !t.Due.IsZero() || t.Delay != 0 || t.UniqueKey != "" || t.Key != "" || t.Keep != 0 || t.Trace != "") {
		err = errOption
	}
	if err == nil {
		err = d.parts[0].producer.CheckSchedule(&s)
	}
	if err != nil {
		return d.refuse(fmt.Errorf("schedule %q: %w", name, err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.ContainsFunc(d.schedules, func(o producer.Schedule) bool { return o.Name == name }) {
		d.bad = errors.Join(d.bad, fmt.Errorf("schedule %q: %w", name, errTwice))
		return fmt.Errorf("schedule %q: %w", name, errTwice)
	}
	d.schedules = append(d.schedules, s.AsStored())
	return nil
}

// errOption refuses an option that would otherwise be ignored.
var errOption = &task.FieldError{
	Field: "options", Reason: "at least one does not apply to the tasks of a schedule",
	Hint: "use queue, priority, timeout, attempts, backoff and secret; the rule says when tasks run, and its overlap how many at once",
}

var errTwice = &task.FieldError{Field: "name", Reason: "declared twice", Hint: "give each schedule its own name"}

func (d *Dispatcher) refuse(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bad = errors.Join(d.bad, err)
	return err
}

// Declare replaces all declared schedules, even while the dispatcher runs: if this instance leads, the changes take effect
// at once. If one schedule is refused, nothing changes. Declare refuses a type without a handler only while the dispatcher runs;
// before, Run does. See Schedule.Elsewhere.
//
// An empty list declares that there are no schedules: those of earlier releases are retired. A nil list declares nothing: they
// stay as they are, as with a config file that lacks the key schedules.
func (d *Dispatcher) Declare(list []Schedule) error {
	named := map[string]bool{}
	for i := range list {
		if err := d.parts[0].producer.CheckSchedule(&list[i]); err != nil {
			return fmt.Errorf("schedule %q: %w", list[i].Name, err)
		}
		if named[list[i].Name] {
			return fmt.Errorf("schedule %q: %w", list[i].Name, errTwice)
		}
		named[list[i].Name] = true
	}
	kept := make([]producer.Schedule, len(list))
	for i := range list {
		kept[i] = list[i].AsStored()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runs {
		if err := errors.Join(d.checkHandled(kept), d.checkPlaces(kept)); err != nil {
			return err
		}
		defer func() {
			for _, p := range d.parts {
				p.scheduler.Redeclare()
			}
		}()
	}
	d.schedules, d.leaves = kept, list == nil
	return nil
}

// checkHandled refuses schedules whose tasks have no known handler: the tasks would wait, while all looks well.
func (d *Dispatcher) checkHandled(list []producer.Schedule) error {
	var all []error
	for i := range list {
		s := &list[i]
		if _, ok := d.mux.Handler(s.Task); ok || s.Elsewhere {
			continue
		}
		hint := "register its handler with Handle; if another program handles it, set Elsewhere of the schedule"
		if near := wording.Nearest(s.Task, d.mux.Types()); near != "" {
			hint = "did you mean " + near + "? Else " + hint
		}
		all = append(all, fmt.Errorf("schedule %q: %w", s.Name, &task.FieldError{Field: "task", Value: s.Task, Reason: "no handler in this program", Hint: hint}))
	}
	return errors.Join(all...)
}

// declared returns the schedules that this release declares. They are never changed, only added to and replaced.
func (d *Dispatcher) declared() []producer.Schedule {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case len(d.schedules) > 0:
		return d.schedules
	case d.leaves:
		return nil
	default:
		return []producer.Schedule{} // no schedules is a declaration too
	}
}

// Enqueue adds one task, with the options applied, and returns its ID. If the ID or unique key is taken, the error matches
// [task.ErrDuplicate], and the returned ID is that of the task that holds it. See [producer.Producer.Enqueue] for other errors.
func (d *Dispatcher) Enqueue(ctx context.Context, t *task.Task, opts ...task.Option) (string, error) {
	return d.producers.Enqueue(ctx, t, opts...)
}

// EnqueueAll adds tasks, thousands a round trip. See [producer.Producer.EnqueueAll]. With [Config.Partitions] the tasks of each partition
// are a batch of their own: if some cannot be added, the result still has an entry for each task, which says why not.
func (d *Dispatcher) EnqueueAll(ctx context.Context, tasks []*task.Task) ([]Result, error) {
	return d.producers.EnqueueAll(ctx, tasks)
}

// Admin looks at the namespace's tasks, schedules, instances and events, and changes them: get, list, count, cancel, retry,
// pause, trigger and more. It needs no Run.
func (d *Dispatcher) Admin() *admin.Admin {
	return d.admin
}

// Unready returns nil while this process can do its part: it runs, is registered and ready, does not drain, and Redis answered
// it within its lease. Otherwise the error says in one line why not, for a readiness probe. Unready makes no call to Redis,
// and is safe for concurrent use.
func (d *Dispatcher) Unready() error {
	d.mu.Lock()
	runs := d.runs
	d.mu.Unlock()
	switch {
	case !runs && d.begun.Load():
		return errWaits
	case !runs:
		return errNotRun
	}
	var lacks error
	ready := 0
	for _, p := range d.parts {
		switch err := p.node.Unready(); {
		case err == nil:
			ready++
		case !instance.OfAway(err):
			return err
		default:
			lacks = err
		}
	}
	if ready > 0 { // a node of Redis that is away is no reason to take all instances out of service
		return nil
	}
	return lacks
}

var (
	errNotRun = errors.New("not started: Run has not been called, or has not begun")
	errWaits  = errors.New("not registered: redis has not answered yet")
)

// Outbox returns an outbox of this namespace: its Add enqueues tasks within a transaction of a SQL database. It checks and encrypts
// payloads as Enqueue does. It needs neither Run nor Config.Outbox, nor Redis: some instance has to look into the database.
func (d *Dispatcher) Outbox() *outbox.Outbox {
	o := &outbox.Outbox{
		Namespace: d.cfg.Namespace, Limits: task.Limits{Payload: d.cfg.PayloadLimit}, Check: d.checkPayload, Secret: d.cfg.Secret,
		Encryption: d.cfg.Encryption, TracerProvider: d.cfg.TracerProvider,
	}
	if len(d.parts) > 1 {
		m := split.Map{Partitions: len(d.parts), Limited: func(typ string) bool {
			known := d.producers.Map().Limited
			return d.cfg.Limits[typ] > 0 || known != nil && known(typ)
		}}
		o.NewID = m.IDOf
	}
	return o
}

// tellsOf is the observer of messages and heartbeats; nil if there is none.
func (d *Dispatcher) tellsOf() notify.Observer {
	if d.cfg.Observer == nil {
		return nil
	}
	return d.cfg.Observer
}

// Close closes the connections to the archive, if there is one. Call it when neither Run nor what [Dispatcher.Admin] returned
// is used any more. The caller closes the client of Redis.
func (d *Dispatcher) Close() error {
	var errs []error
	for _, p := range d.parts {
		if p.archive != nil {
			errs = append(errs, p.archive.Close())
		}
	}
	return errors.Join(errs...)
}

// Types that a [Dispatcher] takes and returns, so that a program that uses a Dispatcher imports few other packages.
type (
	// Schedule is a schedule as [Dispatcher.Declare] takes it.
	Schedule = producer.Schedule
	// Result is the outcome of one task of a batch; see [Dispatcher.EnqueueAll].
	Result = producer.Result
	// BatchError says which task of a batch was refused, and why.
	BatchError = producer.BatchError
)
