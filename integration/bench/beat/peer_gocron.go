package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/bsm/redislock"
	gocronlock "github.com/go-co-op/gocron-redis-lock/v2"
	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// startGocronLocker locks each run, as https://github.com/go-co-op/gocron-redis-lock shows it. The lock "is held for the duration of the
// job's run", and "the implementation is still vulnerable to clockskew between scheduler instances"
// (https://pkg.go.dev/github.com/go-co-op/gocron/v2#Locker).
func startGocronLocker(_ context.Context, r *replica, run runner) (func() error, error) {
	locker, err := gocronlock.NewRedisLocker(redis.NewClient(&redis.Options{Addr: r.Store}), gocronlock.WithTries(1))
	if err != nil {
		return nil, err
	}
	return startGocron(r, run, gocron.WithDistributedLocker(locker))
}

// startGocronElector lets only a leader run jobs, which gocron advises where the limits of a locker are not acceptable
// (https://pkg.go.dev/github.com/go-co-op/gocron/v2#Locker).
func startGocronElector(ctx context.Context, r *replica, run runner) (func() error, error) {
	e := &elector{}
	ctx, resign := context.WithCancel(ctx)
	resigned := make(chan struct{})
	go func() {
		defer close(resigned)
		e.campaign(ctx, redislock.New(redis.NewClient(&redis.Options{Addr: r.Store})))
	}()
	stop, err := startGocron(r, run, gocron.WithDistributedElector(e))
	return func() error {
		resign() // first, so that another replica leads while the runs of this one end
		<-resigned
		return stop()
	}, err
}

// startGocron starts the jobs. For an interval gocron advises a first start at a time rounded to it
// (https://pkg.go.dev/github.com/go-co-op/gocron/v2#Locker), so these jobs keep their grid by the wall clock.
func startGocron(r *replica, run runner, several gocron.SchedulerOption) (func() error, error) {
	s, err := gocron.NewScheduler(several)
	if err != nil {
		return nil, err
	}
	for _, j := range r.Jobs {
		when := gocron.DurationJob(j.Every)
		opts := []gocron.JobOption{
			gocron.WithName(j.Name),
			gocron.WithStartAt(gocron.WithStartDateTime(time.Now().Truncate(j.Every).Add(j.Every))),
		}
		if j.Wall {
			when, opts = gocron.CronJob("* * * * * *", true), opts[:1]
		}
		// gocron would end the context of a run at the beginning of Shutdown, and then waits for runs without one.
		task := gocron.NewTask(func() error { return run(context.Background(), j, uuid.NewString()) })
		if _, err := s.NewJob(when, task, opts...); err != nil {
			return nil, err
		}
	}
	s.Start()
	return s.Shutdown, nil
}

// elector leads while it holds a lease in Redis. gocron has the interface only: the one elector that go-co-op publishes needs etcd, and
// gocron 1 (https://github.com/go-co-op/gocron-etcd-elector). The lease is ten seconds, as in its example.
type elector struct{ leads atomic.Bool }

var errNotLeader = errors.New("another replica leads")

func (e *elector) IsLeader(context.Context) error {
	if e.leads.Load() {
		return nil
	}
	return errNotLeader
}

const lease = 10 * time.Second

// campaign takes the lease when it is free, keeps it, and gives it back at the end.
func (e *elector) campaign(ctx context.Context, locks *redislock.Client) {
	for ctx.Err() == nil {
		held, err := locks.Obtain(ctx, "leader", lease, nil)
		if err != nil {
			pause(ctx, 100*time.Millisecond)
			continue
		}
		e.leads.Store(true)
		for until := time.Now().Add(lease); time.Now().Before(until); {
			pause(ctx, lease/10)
			if ctx.Err() != nil {
				break
			}
			asked := time.Now()
			switch err := held.Refresh(ctx, lease, nil); {
			case err == nil:
				until = asked.Add(lease)
			case errors.Is(err, redislock.ErrNotObtained):
				until = asked
			}
		}
		e.leads.Store(false)
		_ = held.Release(context.WithoutCancel(ctx))
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
