package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/outbox"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// The states of a check.
const (
	OK   = "ok"
	Warn = "warn"
	Fail = "fail"
)

// Check is the result of one check.
type Check struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// Config says what to check, and how to reach it.
type Config struct {
	// Redis is a client of the URL. The caller closes it.
	Redis redis.UniversalClient
	// URL is the URL that the client was made from. The report shows it without its password.
	URL string
	// Namespace is the namespace to check. "": only Redis is checked.
	Namespace string
	// Partitions is into how many the namespace is split. Default 1.
	Partitions int
	// Uncounted says that this user may not read Partitions, and nobody has said them: the namespace is examined as one that is not split.
	Uncounted bool
	// Ping reports whether Redis answers, with a hint if it does not. Default: Redis.Ping.
	Ping func(context.Context) error
	// Cautions are risks of the connection to Redis that the caller knows about. The report begins with them.
	Cautions []Check

	// Durability, Caps and Lease are the settings of the namespace's instances.
	Durability onbeat.Durability
	Caps       onbeat.Caps
	Lease      time.Duration
	// Outbox names the database of the instances' outbox, or is nil.
	Outbox outbox.Opener
	// Encryption are the keys of this process: payloads that are encrypted with others are reported.
	Encryption task.Encryption
	// Archives are where the archive of each partition is. Default: there is none.
	Archives []*archive.Source
}

// caps returns the caps that the instances give to Redis.
func (c *Config) caps() queue.Caps {
	caps := queue.Caps{Dead: c.Caps.Dead, Done: c.Caps.Done, History: c.Caps.History, Events: c.Caps.Events, Buffer: c.Caps.Buffer}
	if len(c.Archives) > 0 {
		caps = caps.ForArchive()
	}
	return caps.WithDefaults()
}

// Report holds the results of all checks.
type Report struct {
	Redis     string  `json:"redis"`
	Namespace string  `json:"namespace"` // "": only Redis was checked
	Checks    []Check `json:"checks"`
}

// Has reports whether any check has this state.
func (r *Report) Has(state string) bool {
	return slices.ContainsFunc(r.Checks, func(c Check) bool { return c.State == state })
}

// doctor checks a namespace and the Redis that holds it.
type doctor struct {
	cfg       Config
	archive   *archive.Source // nil: none
	q         *queue.Queue
	admin     *admin.Admin
	schedules *producer.Schedules
	sentinels *sentinels    // nil: the URL names no sentinels
	node      *redis.Client // the node that holds the namespace
	info      map[string]string
	checks    []Check
	bare      bool // the config names no namespace: only Redis is checked
	moving    bool // the namespace's slot is being moved to another node of the cluster
	full      bool // Redis refuses writes because it has no memory left

	inPause bool // no instance may begin a task now

	state  *state // see seen
	number int    // the partition that it examines; 0: the whole namespace

	limited []string // the types with a limit, of a namespace that is split
}

// state is what several checks judge. It is read once.
type state struct {
	counts    queue.Counts
	instances admin.InstanceList
	err       error
}

// seen returns the counts and the instances, as the first check that asks found them. namespaceOverview reports the error.
func (d *doctor) seen(ctx context.Context) *state {
	if d.state != nil {
		return d.state
	}
	d.state = &state{}
	if d.state.counts, d.state.err = d.q.Counts(ctx); d.state.err == nil {
		d.state.instances, d.state.err = d.admin.Instances.List(ctx)
	}
	return d.state
}

// bareNamespace is used when the config names no namespace. The doctor writes nothing to it.
const bareNamespace = "onbeat-doctor"

// Examine runs all checks. It changes nothing, if the sources of cfg.Archives make no tables either. It returns an error only if it could
// check nothing, because Redis does not answer or refuses the user.
func Examine(ctx context.Context, cfg Config) (Report, error) {
	if cfg.Partitions > 1 {
		return examineParts(ctx, cfg)
	}
	return examine(ctx, cfg, 0)
}

// examine runs all checks of one partition, of a namespace with these types that have a limit; of the whole namespace if number is 0.
func examine(ctx context.Context, cfg Config, number int, limited ...string) (Report, error) {
	d := &doctor{cfg: cfg, bare: cfg.Namespace == "", sentinels: sentinelsOf(cfg.URL), checks: slices.Clone(cfg.Cautions), number: number, limited: limited}
	if at := max(number, 1) - 1; at < len(cfg.Archives) {
		d.archive = cfg.Archives[at]
	}
	name := cmp.Or(cfg.Namespace, bareNamespace)
	var err error
	if d.q, err = queue.New(cfg.Redis, queue.Partition{Namespace: name, Number: number}, cfg.caps()); err != nil {
		return Report{}, err
	}
	p, err := producer.New(d.q.Client(), name, producer.Config{})
	if err != nil {
		return Report{}, err
	}
	d.schedules = producer.NewSchedules(p, nil)
	if d.admin, err = admin.New(d.q.Client(), name, p, nil); err != nil {
		return Report{}, err
	}
	if cfg.Ping == nil {
		cfg.Ping = func(ctx context.Context) error { return store.Classify(store.Ping(ctx, cfg.Redis)) }
	}
	switch err := cfg.Ping(ctx); {
	case store.LacksRight(err):
		err = d.denied(ctx, err)
		return d.report(), err
	case err != nil && !isOfDisk(err): // Redis refuses even PING while it cannot save
		return Report{}, err
	}
	if d.server(ctx); d.node == nil {
		return d.report(), nil
	}
	for _, look := range d.looks() {
		d.look(ctx, look)
	}
	return d.report(), ctx.Err()
}

// looks returns the checks in the order in which they run.
func (d *doctor) looks() []func(context.Context) {
	list := []func(context.Context){d.role, d.cluster, d.failover, d.writes, d.persistence, d.memory, d.scripts}
	if d.bare {
		return append(list, d.latency, d.clock)
	}
	return append(list, d.rights, d.latency, d.clock,
		d.namespaceOverview, d.paused, d.keysOverCaps, d.damage, d.unhandled, d.limits, d.encrypted, d.lateness, d.dead, d.archived, d.outbox)
}

// movingTime limits each check while the namespace's slot is being moved: the client repeats each call that Redis refuses
// during the move.
const movingTime = 2 * time.Second

func (d *doctor) look(ctx context.Context, at func(context.Context)) {
	if d.moving {
		short, done := context.WithTimeout(ctx, movingTime)
		defer done()
		ctx = short
	}
	at(ctx)
}

// denied reports the missing right when nothing else can be checked without it. It returns the cause if no part of onbeat
// needs that right by itself.
func (d *doctor) denied(ctx context.Context, cause error) error {
	if d.bare {
		return cause // rights are checked for a namespace
	}
	if d.rights(ctx); d.checks[len(d.checks)-1].State == OK {
		return cause
	}
	return nil
}

// cure returns a hint for err: missing if the user lacks a right, and "" if no cure is known.
func (d *doctor) cure(err error, missing string) string {
	if err = store.Classify(err); store.LacksRight(err) {
		return missing
	}
	if !errors.Is(err, task.ErrBusy) {
		return ""
	}
	return admin.Hint(err)
}

func (d *doctor) ok(name, format string, args ...any) { d.note(name, OK, "", format, args...) }

func (d *doctor) warn(name, hint, format string, args ...any) {
	d.note(name, Warn, hint, format, args...)
}

func (d *doctor) fail(name, hint, format string, args ...any) {
	d.note(name, Fail, hint, format, args...)
}

func (d *doctor) note(name, state, hint, format string, args ...any) {
	d.checks = append(d.checks, Check{name, state, secret.Text(wording.OneLine(fmt.Sprintf(format, args...))), hint})
}

func (d *doctor) report() Report {
	return Report{Redis: secret.URL(d.cfg.URL), Namespace: d.cfg.Namespace, Checks: d.checks}
}
