// Package peer has the programs that are measured, each behind the same few methods: onbeat, asynq, River, and raw,
// which is the fewest Redis commands that could do the same work. BullMQ is in folder node.
package peer

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/bench/wire"
)

// Task is a unit of work for any peer: its number, its payload, when it is due (zero: at once).
type Task struct {
	N     int
	Bytes int
	Due   time.Time
}

// Options say how a peer dispatches.
type Options struct {
	Concurrency int
	Servers     int           // in this process; callers, for raw
	Share       bool          // other processes take work too
	Tuned       bool          // the peer's own settings for less delay
	Typed       bool          // the handler gets a decoded payload
	Lease       time.Duration // onbeat's; zero is its default
}

// Handler is called by each run with the number of its task.
type Handler func(n int)

// Peer is what is measured. Its methods are those that its documentation would lead a user to.
type Peer interface {
	// Bulk adds tasks by the best method for many, a part of them from each of several goroutines at once.
	Bulk(ctx context.Context, tasks []Task) error
	// One adds one task.
	One(ctx context.Context, t Task) error
	// Dispatch begins to run tasks. Stop ends it in order: when it returns nothing runs any more.
	Dispatch(ctx context.Context, o Options, handle Handler) (stop func() error, err error)
	// Left counts the tasks that are still pending or running.
	Left(ctx context.Context) (int64, error)
	// Calls counts the commands sent to Redis.
	Calls() int64
	Close() error
}

// Beat is one run of a periodic job: which, for which ideal time, and when it began.
type Beat struct {
	Job   int
	Slot  time.Time
	Start time.Time
}

// Cadencer is a peer that runs periodic jobs.
type Cadencer interface {
	// Cadence runs so many jobs, all on the slots of one grid, and hands in every run.
	Cadence(ctx context.Context, jobs int, every time.Duration, beat func(Beat)) (stop func() error, err error)
}

// Viewer is a peer whose state can be looked into.
type Viewer interface {
	// List reads the first page of pending tasks, 100 of them.
	List(ctx context.Context) error
	// Scrape reads what a metrics endpoint shows.
	Scrape(ctx context.Context) error
}

// Open makes the peer a job names.
func Open(ctx context.Context, j *wire.Job) (Peer, error) {
	switch j.Peer {
	case "onbeat":
		return NewOnbeat(j.Redis)
	case "asynq":
		return newAsynq(j.Redis), nil
	case "river":
		return newRiver(ctx, j.Postgres)
	case "raw":
		return newRaw(ctx, j.Redis)
	}
	return nil, fmt.Errorf("unknown peer %q", j.Peer)
}

// The payload is JSON of an exact size, with the task's number at a fixed place: {"n":10000042,"p":"xxxx"}.
const (
	numberAt  = len(`{"n":`)
	numberEnd = numberAt + 8
	numberOff = 10_000_000
	wrapping  = len(`{"n":10000000,"p":""}`)
)

// benchArgs are what a handler with a typed payload gets: it encodes to the same JSON as payload does.
type benchArgs struct {
	N int    `json:"n"`
	P string `json:"p"`
}

func (b benchArgs) number() int { return b.N - numberOff }

// payload makes the payload of a task.
func payload(t Task) []byte {
	b := make([]byte, 0, max(t.Bytes, wrapping))
	b = append(b, `{"n":`...)
	b = strconv.AppendInt(b, int64(numberOff+t.N), 10)
	b = append(b, `,"p":"`...)
	for len(b) < t.Bytes-2 {
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

// counter counts the commands of a go-redis client. (Redis's own count includes those inside scripts.)
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
