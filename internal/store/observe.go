package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Observer learns of the calls to Redis. Its methods may be called from several goroutines at once, and must not block.
type Observer interface {
	// Called is called after each call of a script, with its name, the time that the caller waited, and its error as [Classify] has it.
	Called(script string, took time.Duration, err error)
	// PrimarySuspected is called when claims are held back, because the primary may not be the primary any more: see [ErrSuspect].
	PrimarySuspected()
}

// Observed returns a client that tells o of each call of a script. Closing the client closes rdb.
func Observed(rdb redis.UniversalClient, o Observer) redis.UniversalClient {
	return &Layer{rdb, &observed{rdb: rdb, told: o}}
}

type observed struct {
	rdb     redis.UniversalClient
	told    Observer
	suspect atomic.Bool // the last claim was held back
}

// Process tells the observer of a script. Other commands pass.
func (o *observed) Process(ctx context.Context, cmd redis.Cmder) error {
	c, ok := cmd.(once)
	if !ok {
		return o.rdb.Process(ctx, cmd)
	}
	began := time.Now()
	err := o.rdb.Process(ctx, cmd)
	told := Classify(cmd.Err())
	if redis.HasErrorPrefix(told, "NOSCRIPT") { // the caller sends the source next, and that is the call
		return err
	}
	o.told.Called(c.script.Name, time.Since(began), told)
	if suspect := errors.Is(told, ErrSuspect); c.script.claims && (suspect || told == nil) && o.suspect.Swap(suspect) != suspect && suspect {
		o.told.PrimarySuspected()
	}
	return err
}
