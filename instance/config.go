package instance

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/task"
)

// Lead is the rule by which instances elect a leader.
type Lead string

// The two rules. The newest candidate's rule holds for all.
const (
	// LeadNewest: the newest ready instance of the newest release leads.
	LeadNewest Lead = "newest"
	// LeadSticky: any instance of the newest release leads, and keeps leading while it lives.
	LeadSticky Lead = "sticky"
)

// Consume is the rule that says which instances claim tasks. The leader's rule holds for all.
type Consume string

// The three rules.
const (
	// ConsumeNewest: only the leader claims tasks.
	ConsumeNewest Consume = "newest"
	// ConsumeRelease: every ready instance of the leader's release claims tasks.
	ConsumeRelease Consume = "release"
	// ConsumeAll: every ready instance claims tasks.
	ConsumeAll Consume = "all"
)

// Config describes an instance. The zero value is ready to use.
type Config struct {
	// ID names the instance. Default: a new UUIDv7. Do not use a host name: two processes must never share an ID.
	ID string
	// Release is the version that the instance runs. All instances without one are of one release, older than any other.
	Release string
	// Lead says how the leader is elected. Default LeadNewest.
	Lead Lead
	// Consume says which instances claim tasks. Default ConsumeNewest.
	Consume Consume
	// Standby instances never lead.
	Standby bool
	// Lease is how long the other instances believe that this one lives after its last heartbeat. Default 5s, at least
	// 500ms. The instance sends a heartbeat every fifth of it.
	Lease time.Duration
	// MinReady is how long the instance must be up, with its ReadyCheck passed, before it becomes ready. So a release that
	// crashes at start never leads. (A release that crashes soon after becoming ready is put on probation in any case, see
	// [Registry.Ready].) An instance that comes back after a lost lease does not wait again. Default 0.
	MinReady time.Duration
	// ReadyCheck is called until it returns nil, and once more after MinReady. Then the instance becomes ready. It must
	// return when its context ends. Default: ready at once.
	ReadyCheck func(context.Context) error
	// Order is shared by the managers of a process that is an instance of several partitions of a namespace, each under the same ID.
	// Default: the namespace is not split.
	Order *Order
	// Types are the task types that it handles. They are only shown to people.
	Types []string
	// Queues are the queues that it reads; empty: all. They are only shown to people.
	Queues []string
	// Concurrency is how many tasks it runs at once. It is only shown to people.
	Concurrency int
	// Durable says that writes wait for replicas, so that the Redis user needs the right to WAIT.
	Durable bool
	// Observer is told of heartbeats and terms. Default: nobody is.
	Observer Observer
	// Log receives state changes. The zero Logger discards them.
	Log zerolog.Logger
}

// Order is how new the release of a process is, as far as the partitions of its namespace have told. Redis numbers releases in each
// partition; instances carry the largest number to the others. It is safe for concurrent use. The zero value knows nothing.
type Order struct{ most atomic.Int64 }

func (o *Order) known() int64 {
	if o == nil {
		return 0
	}
	return o.most.Load()
}

func (o *Order) note(order int64) {
	for o != nil {
		had := o.most.Load()
		if order <= had || o.most.CompareAndSwap(had, order) {
			return
		}
	}
}

func (c Config) withDefaults() Config {
	if c.ID == "" {
		c.ID = uuid.Must(uuid.NewV7()).String()
	}
	if c.Lead == "" {
		c.Lead = LeadNewest
	}
	if c.Consume == "" {
		c.Consume = ConsumeNewest
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	return c
}

// heartbeat returns the time between two heartbeats. Four may fail in a row before the lease runs out.
func (c Config) heartbeat() time.Duration { return c.Lease / 5 }

// margin returns how long before the end of its lease in Redis an instance stops trusting it.
func (c Config) margin() time.Duration { return c.Lease / 10 }

// Validate reports invalid fields, with one joined [*task.FieldError] for each. Unset fields are valid.
func (c Config) Validate() error {
	return errors.Join(c.checkRules(), c.checkLease(), c.checkMinReady(), c.checkID(), c.checkRelease())
}

func (c Config) checkRules() (err error) {
	switch c.Lead {
	case "", LeadNewest, LeadSticky:
	default:
		err = &task.FieldError{Field: "lead", Value: string(c.Lead), Reason: "unknown rule", Hint: "newest or sticky"}
	}
	switch c.Consume {
	case "", ConsumeNewest, ConsumeRelease, ConsumeAll:
	default:
		err = errors.Join(err, &task.FieldError{Field: "consume", Value: string(c.Consume), Reason: "unknown rule", Hint: "newest, release or all"})
	}
	return err
}

func (c Config) checkLease() error {
	if c.Lease != 0 && (c.Lease < 500*time.Millisecond || c.Lease > time.Hour) {
		return &task.FieldError{Field: "lease", Value: c.Lease.String(), Reason: "out of range", Hint: "500ms to 1h; the default is 5s"}
	}
	return nil
}

func (c Config) checkMinReady() error {
	if c.MinReady < 0 {
		return &task.FieldError{Field: "min_ready", Value: c.MinReady.String(), Reason: "negative", Hint: "zero or more, for example 10s"}
	}
	return nil
}

func (c Config) checkID() error {
	if c.ID == "" {
		return nil
	}
	return task.CheckName("id", c.ID)
}

func (c Config) checkRelease() error {
	if c.Release == "" {
		return nil
	}
	if err := task.CheckID("release", c.Release); err != nil {
		return err
	}
	if strings.TrimSpace(c.Release) != c.Release {
		return &task.FieldError{Field: "release", Value: c.Release, Reason: "begins or ends with a space", Hint: "for example v42"}
	}
	return nil
}

// Details describe an instance to people. No decision depends on them, except that of the monitor on LeaseMS.
type Details struct {
	Host        string    `json:"host"`
	PID         int       `json:"pid"`
	Started     time.Time `json:"started"`
	Types       []string  `json:"types,omitempty"`
	Queues      []string  `json:"queues,omitempty"`
	Concurrency int       `json:"concurrency,omitempty"`
	LeaseMS     int64     `json:"lease_ms,omitempty"` // how long a lease is
}

// DefaultLease is the lease of a [Config] that does not set one.
const DefaultLease = 5 * time.Second

var started = time.Now().UTC().Truncate(time.Millisecond)

func (c Config) details() Details {
	host, _ := os.Hostname()
	return Details{Host: host, PID: os.Getpid(), Started: started, Types: c.Types, Queues: c.Queues, Concurrency: c.Concurrency, LeaseMS: c.Lease.Milliseconds()}
}
