package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// peer is the system that is measured. Its methods work as its documentation would lead a user to work.
type peer interface {
	// Bulk adds tasks by the best method for many, a part of them from each of several goroutines at once.
	Bulk(ctx context.Context, tasks []work) error
	// One adds one task.
	One(ctx context.Context, w work) error
	// Dispatch begins to run tasks, until the process ends.
	Dispatch(ctx context.Context, o options, handle func(n int)) error
	// Left counts the tasks that are still pending or running.
	Left(ctx context.Context) (int64, error)
	// Calls counts the commands sent to Redis. (Redis's own count includes those inside scripts.)
	Calls() int64
}

// cadencer is a peer that runs periodic jobs.
type cadencer interface {
	// Cadence runs so many jobs, all on the slots of one grid, and hands in every run.
	Cadence(ctx context.Context, jobs int, every time.Duration, run func(beat)) error
}

// work is a task for any peer: its number, its size, when it is due (zero: at once).
type work struct {
	n, bytes int
	due      time.Time
}

// options say how a peer dispatches.
type options struct {
	concurrency int
	servers     int           // in this process; callers, for raw
	share       bool          // other processes take work too
	tuned       bool          // the peer's own settings for less delay
	typed       bool          // the handler gets a decoded payload
	lease       time.Duration // onbeat's; zero is its default
}

// beat is one run of a periodic job: which, for which ideal time, and when it began.
type beat struct {
	job         int
	slot, start time.Time
}

// openPeer makes the peer a job names.
func openPeer(ctx context.Context, c *child) (peer, error) {
	switch c.Peer {
	case "onbeat":
		return newOnbeat(c.Redis, c.Params.Partitions)
	case "asynq":
		return newAsynq(c.Redis), nil
	case "river":
		return newRiver(ctx, c.server.(*postgresServer).URL)
	case "faktory":
		return newFaktory(c.Redis)
	case "raw":
		return newRaw(ctx, c.Redis)
	}
	return nil, fmt.Errorf("no peer %q", c.Peer)
}

// The payload is JSON of an exact size, with the task's number at a fixed place: {"n":10000042,"p":"xxxx"}.
const (
	numberAt  = len(`{"n":`)
	numberEnd = numberAt + 8
	numberOff = 10_000_000
	wrapping  = len(`{"n":10000000,"p":""}`)
)

// typedPayload is what a handler with a typed payload gets.
type typedPayload struct {
	N int    `json:"n"`
	P string `json:"p"`
}

func (t typedPayload) number() int { return t.N - numberOff }

func (w work) payload() []byte {
	b := make([]byte, 0, max(w.bytes, wrapping))
	b = append(b, `{"n":`...)
	b = strconv.AppendInt(b, int64(numberOff+w.n), 10)
	b = append(b, `,"p":"`...)
	for len(b) < w.bytes-2 {
		b = append(b, 'x')
	}
	return append(b, `"}`...)
}

// number reads the task's number out of a payload.
func number[B []byte | string](b B) int {
	if len(b) < numberEnd {
		return -1
	}
	n := 0
	for i := numberAt; i < numberEnd; i++ {
		n = n*10 + int(b[i]-'0')
	}
	return n - numberOff
}

// counter counts the commands of a go-redis client.
type counter struct{ n atomic.Int64 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}
