package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/store"
)

// The states of a check.
const (
	OK   = "ok"
	Warn = "warn"
	Fail = "fail"
)

// Check is one thing the doctor looked at.
type Check struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// Config says what to look at.
type Config struct {
	// Redis is a client of the URL. The caller closes it.
	Redis redis.UniversalClient
	// URL is how the client was made. The report shows it without its password.
	URL string
	// Namespace is the namespace to check. "": only Redis is checked.
	Namespace string
	// Ping reports whether Redis answers, with a hint if it does not.
	Ping func(context.Context) error
	// Cautions are what the caller knows to be unsafe about the way to Redis. The report begins with them.
	Cautions []Check

	// Durability, Caps and Lease are what the instances of the namespace are set to.
	Durability store.Durability
	Caps       queue.Caps
	Lease      time.Duration
}

// Report is what was found.
type Report struct {
	Redis     string  `json:"redis"`
	Namespace string  `json:"namespace"` // "": only Redis was checked
	Checks    []Check `json:"checks"`
}

// Has reports whether a check has a state.
func (r *Report) Has(state string) bool {
	return slices.ContainsFunc(r.Checks, func(c Check) bool { return c.State == state })
}

// doctor looks at a namespace and the Redis it is on.
type doctor struct {
	cfg       Config
	q         *queue.Queue
	admin     *admin.Admin
	sentinels *sentinels    // nil: the URL names none
	node      *redis.Client // the one that holds the namespace
	info      map[string]string
	checks    []Check
	bare      bool // no namespace is named: only Redis is checked
	moving    bool // the slot of the namespace is on its way to another node of the cluster
	full      bool // Redis refuses writes for want of memory

	inPause bool // no instance may begin a task now
}

// bareNamespace stands where no namespace is named. Nothing is written to it.
const bareNamespace = "onbeat-doctor"

// Examine makes all checks. It changes nothing. It returns an error only if nothing could be checked, because Redis does not
// answer or refuses the user.
func Examine(ctx context.Context, cfg Config) (Report, error) {
	d := &doctor{cfg: cfg, bare: cfg.Namespace == "", sentinels: sentinelsOf(cfg.URL), checks: slices.Clone(cfg.Cautions)}
	name := cmp.Or(cfg.Namespace, bareNamespace)
	var err error
	if d.q, err = queue.New(cfg.Redis, queue.Partition{Namespace: name}, cfg.Caps); err != nil {
		return Report{}, err
	}
	reg, err := instance.NewRegistry(cfg.Redis, queue.Partition{Namespace: name})
	if err != nil {
		return Report{}, err
	}
	d.admin = admin.Of(d.q, producer.New(d.q, producer.Config{}), reg)
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

// looks are the checks, in the order in which they are made.
func (d *doctor) looks() []func(context.Context) {
	list := []func(context.Context){d.role, d.cluster, d.failover, d.writes, d.persistence, d.memory, d.scripts}
	if d.bare {
		return append(list, d.latency, d.clock)
	}
	return append(list, d.rights, d.latency, d.clock,
		d.namespaceOverview, d.paused, d.keysOverCaps, d.damage, d.unhandled, d.lateness, d.dead)
}

// movingTime is how long each look may take while the slot of the namespace is on its way: what Redis refuses then is asked
// for again and again.
const movingTime = 2 * time.Second

func (d *doctor) look(ctx context.Context, at func(context.Context)) {
	if d.moving {
		short, done := context.WithTimeout(ctx, movingTime)
		defer done()
		ctx = short
	}
	at(ctx)
}

// denied checks which right is missing where, without it, nothing else can be checked. It returns the cause if no part of
// onbeat needs that right by itself.
func (d *doctor) denied(ctx context.Context, cause error) error {
	if d.bare {
		return cause // rights are those in a namespace
	}
	if d.rights(ctx); d.checks[len(d.checks)-1].State == OK {
		return cause
	}
	return nil
}

// cure is what helps against err: missing where it is the user who may not, and nothing where it is not known.
func (d *doctor) cure(err error, missing string) string {
	if err = store.Classify(err); store.LacksRight(err) {
		return missing
	}
	if !errors.Is(err, store.ErrBusy) {
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
	d.checks = append(d.checks, Check{name, state, store.RedactedText(wording.OneLine(fmt.Sprintf(format, args...))), hint})
}

func (d *doctor) report() Report {
	return Report{Redis: store.Redacted(d.cfg.URL), Namespace: d.cfg.Namespace, Checks: d.checks}
}
