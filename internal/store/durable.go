package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// Durability says for how many replicas a write waits. onbeat.Durability has the documentation of its fields.
type Durability struct {
	Replicas int
	Timeout  time.Duration
	Strict   bool
	Report   func(replicas int, enough bool)
}

// durableTimeout is the default. For durablePause calls do not wait, once there were too few replicas.
const (
	durableTimeout = 200 * time.Millisecond
	durablePause   = time.Second
)

// Validate refuses, with one joined [*task.FieldError] for each field, settings that cannot work.
func (d Durability) Validate() error { return wording.Join(d.checkReplicas(), d.checkTimeout()) }

func (d Durability) checkReplicas() error {
	if d.Replicas < 0 || d.Replicas > 100 {
		return &task.FieldError{
			Field: "replicas", Value: strconv.Itoa(d.Replicas), Reason: "out of range", Hint: "0 to 100; the default is 0",
		}
	}
	if d.Timeout != 0 && d.Replicas == 0 {
		return &task.FieldError{
			Field: "replicas", Reason: "missing: timeout needs it", Hint: "for example 1",
		}
	}
	if d.Strict && d.Replicas == 0 {
		return &task.FieldError{
			Field: "replicas", Reason: "missing: strict needs it",
			Hint: "as many as Redis has: then a failover repeats nothing",
		}
	}
	return nil
}

func (d Durability) checkTimeout() error {
	if d.Timeout != 0 && (d.Timeout < time.Millisecond || d.Timeout > 2*time.Second) {
		return &task.FieldError{
			Field: "timeout", Value: d.Timeout.String(), Reason: "out of range", Hint: "1ms to 2s; the default is 200ms",
		}
	}
	return nil
}

// ValidateFor refuses, with a [*task.FieldError], settings that cannot work with a client. The client's read timeout must be
// longer than the wait for replicas, or the client gives up before Redis answers.
func (d Durability) ValidateFor(rdb redis.UniversalClient) error {
	if err := d.Validate(); err != nil {
		return err
	}
	var read time.Duration
	switch c := rdb.(type) {
	case *redis.Client:
		read = c.Options().ReadTimeout
	case *redis.ClusterClient:
		read = c.Options().ReadTimeout
	}
	if d.Timeout == 0 {
		d.Timeout = durableTimeout
	}
	if d.Replicas == 0 || read <= 0 || d.Timeout < read {
		return nil
	}
	return &task.FieldError{
		Field: "timeout", Value: d.Timeout.String(), Reason: "not less than the client's read_timeout of " + read.String(),
		Hint: "the client would give up first: raise read_timeout in the URL of Redis, or lower this",
	}
}

// Durable returns a client whose scripts return once replicas have their writes. Fleeting scripts do not wait. With replicas
// to wait for, and with Sentinel, a replica may take the place of the primary before the primary knows. So the client also
// holds back the claims of a primary that just lost a replica: see [suspicion]. Closing the client closes rdb.
func Durable(rdb redis.UniversalClient, d Durability) redis.UniversalClient {
	if d.Replicas == 0 && !bySentinel(rdb) {
		return rdb
	}
	if d.Timeout == 0 {
		d.Timeout = durableTimeout
	}
	return &Layer{rdb, &durable{rdb: rdb, want: d}}
}

type durable struct {
	rdb     redis.UniversalClient
	want    Durability
	suspect suspicion
	short   atomic.Bool  // too few replicas answered the last time
	again   atomic.Int64 // unix ns: until then calls do not wait, unless the client is strict
}

// Plain returns the client that a client of [Durable] or [Observed] wraps, or the client itself. It is for commands that are
// not scripts.
func Plain(rdb redis.UniversalClient) redis.UniversalClient {
	if d, ok := over[*durable](rdb); ok {
		return Plain(d.rdb)
	}
	if o, ok := over[*observed](rdb); ok {
		return Plain(o.rdb)
	}
	return rdb
}

// Node returns a client of the one node that holds a key, or nil if the client does not tell which that is.
func Node(ctx context.Context, rdb redis.UniversalClient, key string) *redis.Client {
	switch c := Plain(rdb).(type) {
	case *redis.Client:
		return c
	case *redis.ClusterClient:
		if node, err := c.MasterForKey(ctx, key); err == nil {
			return node
		}
	}
	return nil
}

// IsStrict reports whether a client comes from [Durable] with Strict set: a write that too few replicas have is an error.
func IsStrict(rdb redis.UniversalClient) bool {
	if o, ok := over[*observed](rdb); ok {
		return IsStrict(o.rdb)
	}
	d, ok := over[*durable](rdb)
	return ok && d.want.Strict
}

type relaxed struct{}

// Relaxed returns a context for calls after which no task begins, such as those of an instance that drains. With it, too
// few replicas or a suspect primary do not hold up a call.
func Relaxed(ctx context.Context) context.Context { return context.WithValue(ctx, relaxed{}, true) }

func isRelaxed(ctx context.Context) bool { return ctx.Value(relaxed{}) != nil }

// waits reports whether calls wait for replicas now.
func (d *durable) waits() bool {
	return d.want.Replicas > 0 && (d.want.Strict || !d.short.Load() || time.Now().UnixNano() >= d.again.Load())
}

// Process sends a script and, behind it, the commands that tell whether to rely on its reply: INFO and WAIT. All go in one
// round trip and on one connection, because WAIT is about the writes that came before it on the same connection.
func (d *durable) Process(ctx context.Context, cmd redis.Cmder) error {
	c, ok := cmd.(once)
	looks, waits := ok && (c.script.claims || c.script.looks) && d.suspect.looks(), ok && !c.script.fleeting && d.waits()
	if !looks && !waits {
		return d.rdb.Process(ctx, cmd)
	}
	pipe, err := d.pipeline(ctx, c)
	if err != nil {
		cmd.SetErr(err)
		return err
	}
	_ = pipe.Process(ctx, cmd)
	info := redis.NewStringCmd(ctx, "info", "replication")
	if looks {
		_ = pipe.Process(ctx, info)
	}
	wait := redis.NewIntCmd(ctx, "wait", d.want.Replicas, d.patience(ctx).Milliseconds())
	if waits {
		_ = pipe.Process(ctx, wait)
	}
	_, _ = pipe.Exec(ctx) // each has its own error
	if err := cmd.Err(); err != nil {
		return err
	}
	if looks {
		err = d.suspect.look(info)
	}
	if !c.script.claims || isRelaxed(ctx) && errors.Is(err, ErrSuspect) {
		err = nil
	}
	if err == nil && waits {
		err = d.acknowledged(wait, d.want.Strict && !isRelaxed(ctx))
	}
	if err != nil {
		cmd.SetErr(err)
	}
	return err
}

// acknowledged reads the reply of WAIT. If it returns an error, the caller must treat the script before WAIT as unanswered.
func (d *durable) acknowledged(wait *redis.IntCmd, strict bool) error {
	acked, err := wait.Result()
	var refused redis.Error
	switch {
	case err != nil && !errors.As(err, &refused):
		return err // the primary was lost before it said that a replica has the write
	case err != nil && (redis.HasErrorPrefix(err, "UNBLOCKED") || strings.Contains(err.Error(), "replica instances")):
		return fmt.Errorf("%w: %s", task.ErrUnreachable, err.Error()) // the primary became a replica, before or during the wait
	case err != nil && errors.Is(Classify(err), task.ErrBusy):
		return fmt.Errorf("%w: %s", task.ErrUnreachable, err.Error()) // not ErrBusy: the script has run
	case err != nil && strict:
		return err // for example, the user may not call WAIT
	}
	d.note(int(acked))
	if strict && int(acked) < d.want.Replicas {
		return fmt.Errorf("%w: %d of the %d that durability asks for have the write", task.ErrUnreplicated, acked, d.want.Replicas)
	}
	return nil
}

// patience returns how long to wait for replicas: at most half of the time that the caller has left. Otherwise a caller that
// gives up and tries again would never learn that there are too few replicas.
func (d *durable) patience(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return max(min(d.want.Timeout, time.Until(end)/2), time.Millisecond)
	}
	return d.want.Timeout
}

// pipeline returns a pipeline to the node that has the script's keys.
func (d *durable) pipeline(ctx context.Context, script redis.Cmder) (pipeline, error) {
	c, ok := d.rdb.(ofCluster)
	if !ok {
		return d.rdb.Pipeline(), nil
	}
	key, _ := script.Args()[3].(string)
	node, err := c.MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	return &following{cluster: c, node: node, key: key}, nil
}

func (d *durable) note(acked int) {
	short := acked < d.want.Replicas
	if short {
		d.again.Store(time.Now().Add(durablePause).UnixNano())
	}
	if d.short.Swap(short) != short && d.want.Report != nil {
		d.want.Report(acked, !short)
	}
}
