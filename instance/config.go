package instance

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/task"
)

// Lead is the rule by which an instance lets itself be led.
type Lead string

// The two rules. The newest candidate's rule holds for all.
const (
	// LeadNewest: the newest ready instance of the newest release leads.
	LeadNewest Lead = "newest"
	// LeadSticky: any instance of the newest release leads, and keeps leading while it lives.
	LeadSticky Lead = "sticky"
)

// Consume is the rule by which work is taken. The leader's rule holds for all.
type Consume string

// The three rules.
const (
	// ConsumeNewest: only the leader takes work.
	ConsumeNewest Consume = "newest"
	// ConsumeRelease: every instance of the leader's release takes work.
	ConsumeRelease Consume = "release"
	// ConsumeAll: every ready instance takes work.
	ConsumeAll Consume = "all"
)

// Config describes an instance. The zero value is ready to use.
type Config struct {
	// ID names the instance. Default: a new UUIDv7. Never a host name: two processes must never share one.
	ID string
	// Release is the version it runs. Instances without one are of one release, older than any other.
	Release string
	// Lead is the rule of leadership. Default LeadNewest.
	Lead Lead
	// Consume is the rule of taking work. Default ConsumeNewest.
	Consume Consume
	// Standby instances never lead.
	Standby bool
	// Lease is how long the instance is believed to live after its last heartbeat. Default 5s, at least 500ms. A
	// heartbeat goes out every fifth of it.
	Lease time.Duration
	// MinReady is how long the instance must have been up and ready before it joins the contest, so that a release
	// that crashes at start never leads; one that crashes soon after becoming ready is put on probation in any case, see
	// [Registry.Ready]. Coming back after a lost lease takes no such proof. Default 0.
	MinReady time.Duration
	// ReadyCheck is asked until it returns nil before the instance joins the contest, and once more after MinReady. It must
	// heed its context. Default: ready at once.
	ReadyCheck func(context.Context) error
	// Types are the task types it handles, for people to see.
	Types []string
	// Concurrency is how many tasks it runs at once, for people to see.
	Concurrency int
	// Durable says that writes wait for replicas: the user needs the right to.
	Durable bool
	// Log receives state changes. The zero Logger discards them.
	Log zerolog.Logger
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

// heartbeat is the time between two heartbeats: four may be lost before the lease is.
func (c Config) heartbeat() time.Duration { return c.Lease / 5 }

// margin is by how much an instance stops trusting its lease before it could run out in Redis.
func (c Config) margin() time.Duration { return c.Lease / 10 }

// Validate refuses, with a [*task.FieldError] for each field, what could not work. Unset fields are fine.
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

// Details are what people see of an instance.
type Details struct {
	Host        string    `json:"host"`
	PID         int       `json:"pid"`
	Started     time.Time `json:"started"`
	Types       []string  `json:"types,omitempty"`
	Concurrency int       `json:"concurrency,omitempty"`
	LeaseMS     int64     `json:"lease_ms,omitempty"` // how long a lease is; 0: a release that does not say
}

// DefaultLease is that of a [Config] that names none.
const DefaultLease = 5 * time.Second

var started = time.Now().UTC().Truncate(time.Millisecond)

func (c Config) details() Details {
	host, _ := os.Hostname()
	return Details{Host: host, PID: os.Getpid(), Started: started, Types: c.Types, Concurrency: c.Concurrency, LeaseMS: c.Lease.Milliseconds()}
}
