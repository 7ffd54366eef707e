package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/foreign"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

type importAsynqCmd struct {
	From     string `placeholder:"URL" help:"Redis that asynq uses, or file:PATH of a file that holds the URL. Default: the Redis of onbeat."`
	Move     bool   `help:"With --apply, also move the tasks that wait: pending, scheduled and to be retried."`
	Timezone string `placeholder:"TZ" default:"UTC" help:"Zone of the schedulers of asynq (default ${default})."`
	importFlags
}

// Help is shown by onbeat import asynq --help.
func (c *importAsynqCmd) Help() string {
	return "Each entry of a scheduler of asynq that runs now becomes a schedule, and each task that waits can move. A program handles their types: see docs/from/asynq.md." +
		importHelp + " --move is safe to repeat: a task that waits runs once, here or there. Stop the schedulers of asynq before."
}

// Run reads asynq's Redis.
func (c *importAsynqCmd) Run(ctx context.Context, a *app) error {
	if c.Move && !c.Apply {
		return &usageError{"--move needs --apply", "without both, the command prints how many tasks wait"}
	}
	zone, err := (&importZone{c.Timezone}).zone(a.env)
	if err != nil {
		return err
	}
	rdb, err := c.dial(a)
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()
	var jobs foreign.Jobs
	if err := jobs.Asynq(ctx, rdb, zone); err != nil {
		return store.Classify(err)
	}
	queues, waiting, err := foreign.AsynqWaiting(ctx, rdb)
	if err != nil {
		return store.Classify(err)
	}
	if waiting > 0 && !c.Move {
		fmt.Fprintf(a.err, "onbeat: note: %s in asynq (move them with --apply --move)\n", wording.Count(waiting, "task waits", "tasks wait"))
	}
	err = c.take(ctx, a, &jobs)
	if !c.Move || err != nil && !errors.Is(err, errSaid) {
		return err
	}
	return cmp.Or(c.move(ctx, a, rdb, queues), err)
}

func (c *importAsynqCmd) dial(a *app) (redis.UniversalClient, error) {
	url, err := c.From, error(nil)
	if url == "" {
		file, err := a.named()
		if err != nil {
			return nil, err
		}
		if url, err = a.urlOf(file); err != nil {
			return nil, err
		}
	} else if url, err = redisURL(url); err != nil {
		return nil, err
	}
	return config.Dial(onbeat.Dialer{}, url)
}

// move moves the tasks that wait, queue by queue.
func (c *importAsynqCmd) move(ctx context.Context, a *app, rdb redis.UniversalClient, queues []string) error {
	t, err := a.target()
	if err != nil {
		return err
	}
	cl, err := a.connectTo(ctx, t)
	if err != nil {
		return err
	}
	defer cl.Close()
	moved, stay := 0, 0
	for _, q := range queues {
		m := foreign.AsynqMove{
			Redis: rdb, Queue: q,
			Check: func(one *task.Task) error { return one.Validate(t.limits()) },
			Add: func(ctx context.Context, list []*task.Task) error {
				results, err := cl.Tasks.Enqueue(ctx, list)
				for _, r := range results {
					if r.Err != nil && r.There() == nil {
						err = errors.Join(err, r.Err)
					}
				}
				return err
			},
			Stays: func(id string, why error) {
				stay++
				fmt.Fprintf(a.err, "onbeat: left out: %s of queue %s: %s\n", id, q, said(why))
			},
		}
		n, err := m.Run(ctx)
		if moved += n; err != nil {
			return &failure{fmt.Errorf("%s moved, then: %w", wording.Count(int64(moved), "task was", "tasks were"), err), "run the command again: it goes on with the tasks that it holds"}
		}
	}
	fmt.Fprintf(a.err, "onbeat: moved %s\n", wording.Count(int64(moved), "task", "tasks"))
	if stay > 0 {
		return errSaid
	}
	return nil
}
