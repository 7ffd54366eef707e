package main

import (
	"context"
	"errors"
	"log"

	"github.com/bsm/redislock"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"
)

// startCron is robfig/cron with a Redis lock around each job. For replicas its author says: "That use case is out of scope for this
// library, but I think you could get something to work if you were to use a distributed lock" (https://github.com/robfig/cron/issues/417).
//
// The lock is held for four fifths of the interval and not given back, as a lock around a cron job has to be: one that ends with the
// run lets a replica whose clock is behind run the job again.
func startCron(_ context.Context, r *replica, run runner) (func() error, error) {
	locks := redislock.New(redis.NewClient(&redis.Options{Addr: r.Store}))
	c := cron.New(cron.WithSeconds())
	for _, j := range r.Jobs {
		spec := "@every " + j.Every.String()
		if j.Wall {
			spec = "* * * * * *"
		}
		_, err := c.AddFunc(spec, func() {
			ctx := context.Background()
			if _, err := locks.Obtain(ctx, j.Name, j.Every*4/5, nil); err != nil {
				if !errors.Is(err, redislock.ErrNotObtained) {
					log.Print(j.Name, ": ", err)
				}
				return
			}
			if err := run(ctx, j, uuid.NewString()); err != nil {
				log.Print(j.Name, ": ", err)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	c.Start()
	return func() error {
		<-c.Stop().Done() // when the runs have ended
		return nil
	}, nil
}
