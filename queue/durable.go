package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/task"
)

// Durability says for how many replicas a write waits (the WAIT of Redis).
//
// With it, what was answered is on that many replicas, and so outlives the primary if one of them is promoted. It is no
// consensus: a sentinel may promote another one. And it does not stop the beat: with too few replicas, or with too slow
// ones, the work goes on, is as durable as without, and whoever asked is told.
type Durability struct {
	// Replicas is how many must have a write before it is answered. Default 0: nobody waits.
	Replicas int
	// Timeout is how long they are waited for. Default 200ms, at most 2s: less than the client waits for any answer.
	Timeout time.Duration
	// Report is called when there are too few replicas, with how many there were, and when there are enough again.
	Report func(replicas int, enough bool)
}

// durableTimeout is the default, and durablePause how long nobody waits once there were too few replicas.
const (
	durableTimeout = 200 * time.Millisecond
	durablePause   = time.Second
)

// Validate refuses, with a [*task.FieldError], what could not work.
func (d Durability) Validate() error {
	if d.Replicas < 0 || d.Replicas > 100 {
		return &task.FieldError{
			Field: "durability.replicas", Value: strconv.Itoa(d.Replicas), Reason: "out of range", Hint: "0 to 100; the default is 0",
		}
	}
	if d.Timeout != 0 && d.Replicas == 0 {
		return &task.FieldError{
			Field: "durability.replicas", Reason: "missing: with a timeout alone nobody is waited for", Hint: "for example 1",
		}
	}
	if d.Timeout != 0 && (d.Timeout < time.Millisecond || d.Timeout > 2*time.Second) {
		return &task.FieldError{
			Field: "durability.timeout", Value: d.Timeout.String(), Reason: "out of range", Hint: "1ms to 2s; the default is 200ms",
		}
	}
	return nil
}

// ValidateFor refuses, with a [*task.FieldError], what could not work with a client: one that gives up on an answer
// before the replicas are waited for.
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
		Field: "durability.timeout", Value: d.Timeout.String(), Reason: "not less than the client's read_timeout of " + read.String(),
		Hint: "an answer comes after it: raise read_timeout in the URL of Redis, or lower this",
	}
}

// Durable is a client whose scripts are answered when replicas have what they wrote, but for fleeting ones. Closing it
// closes rdb.
func Durable(rdb redis.UniversalClient, d Durability) redis.UniversalClient {
	if d.Replicas == 0 {
		return rdb
	}
	if d.Timeout == 0 {
		d.Timeout = durableTimeout
	}
	return &durable{UniversalClient: rdb, want: d}
}

type durable struct {
	redis.UniversalClient
	want  Durability
	short atomic.Bool  // the last time there were too few
	again atomic.Int64 // unix ns: until then nobody waits
}

// Process sends a script and WAIT in one round trip, on one connection: WAIT is about the writes of its own.
func (d *durable) Process(ctx context.Context, cmd redis.Cmder) error {
	script, ok := cmd.(once)
	if !ok || d.short.Load() && time.Now().UnixNano() < d.again.Load() {
		return d.UniversalClient.Process(ctx, cmd)
	}
	pipe, err := d.pipeline(ctx, script)
	if err != nil {
		cmd.SetErr(err)
		return err
	}
	wait := redis.NewIntCmd(ctx, "wait", d.want.Replicas, d.patience(ctx).Milliseconds())
	_ = pipe.Process(ctx, cmd)
	_ = pipe.Process(ctx, wait)
	_, _ = pipe.Exec(ctx) // each has its own error
	if err := cmd.Err(); err != nil {
		return err
	}
	acked, err := wait.Result()
	var refused redis.Error
	if err != nil && !errors.As(err, &refused) {
		cmd.SetErr(err) // the primary was lost before a replica was known to have it: as if nothing had been answered
		return err
	}
	if err != nil && (redis.HasErrorPrefix(err, "UNBLOCKED") || strings.Contains(err.Error(), "replica instances")) {
		err = fmt.Errorf("%w: %s", ErrUnreachable, err.Error()) // it became a replica while or before it waited, which is the same
		cmd.SetErr(err)
		return err
	}
	d.note(int(acked))
	return nil
}

// patience is how long replicas are waited for: no longer than half of what the caller has left, or a call that is given
// up and tried again would never learn that there are too few.
func (d *durable) patience(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return max(min(d.want.Timeout, time.Until(end)/2), time.Millisecond)
	}
	return d.want.Timeout
}

// pipeline is one to the node that has the script's keys.
func (d *durable) pipeline(ctx context.Context, script once) (redis.Pipeliner, error) {
	c, ok := d.UniversalClient.(ofCluster)
	if !ok {
		return d.Pipeline(), nil
	}
	key, _ := script.Args()[3].(string)
	node, err := c.MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	return &following{Pipeliner: node.Pipeline(), cluster: c, node: node, key: key}, nil
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

// ReloadState is for [reloadState].
func (d *durable) ReloadState(ctx context.Context) { reloadState(ctx, d.UniversalClient) }
