package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	remote "github.com/onbeat/onbeat/client"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/foreign"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
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
		url, err = a.urlAlone()
	} else {
		url, err = redisURL(url)
	}
	if err != nil {
		return nil, err
	}
	return config.Dial(onbeat.Dialer{}, url)
}

// urlAlone returns the URL of the Redis of onbeat as redisOf does, for a command that can do without a namespace.
func (a *app) urlAlone() (string, error) {
	file, err := a.named()
	if err != nil {
		return "", err
	}
	url, err := a.urlOf(file)
	if err == nil && a.Redis == "" {
		err = file.CheckTLS(url)
	}
	return file.WithTLS(url), err
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
	places, err := cl.places(ctx, t.cfg.Limits)
	if err != nil {
		return err
	}
	mux := config.NewMux()
	moved, stay, held := 0, 0, 0
	for _, q := range queues {
		m := foreign.AsynqMove{
			Redis: rdb, Queue: q,
			Check: func(one *task.Task) error { // as enqueue --file checks a line
				err := one.Validate(t.limits())
				if err == nil {
					err = config.CheckPayload(mux, one.Type, one.Payload, false)
				}
				if err == nil {
					err = producer.CheckNames(one)
				}
				if err == nil {
					_, err = places.Task(one)
				}
				return err
			},
			Add: func(ctx context.Context, list []*task.Task) (map[*task.Task]error, error) {
				refused := map[*task.Task]error{}
				return refused, cl.addEach(ctx, list, refused)
			},
			Stays: func(id string, isHeld bool, why error) {
				did := "left out"
				if stay++; isHeld {
					held++
					did = "held"
				}
				fmt.Fprintf(a.err, "onbeat: %s: %s of queue %s: %s\n", did, id, q, said(why))
			},
		}
		n, err := m.Run(ctx)
		if moved += n; err != nil {
			return &failure{fmt.Errorf("%s moved, then: %w", wording.Count(int64(moved), "task was", "tasks were"), err), "run the command again: it goes on with the tasks that it holds"}
		}
	}
	fmt.Fprintf(a.err, "onbeat: moved %s\n", wording.Count(int64(moved), "task", "tasks"))
	switch {
	case held > 0:
		return &failure{
			fmt.Errorf("%s held: asynq cannot run what an import holds", wording.Count(int64(held), "task is", "tasks are")),
			"mend why onbeat refuses each, and run the command again",
		}
	case stay > 0:
		return errSaid
	}
	return nil
}

// addEach adds tasks of one queue. It notes those that are refused, with the reason, and adds the others.
func (c *client) addEach(ctx context.Context, list []*task.Task, refused map[*task.Task]error) error {
	var failed error // of the first task of which nothing is known
	for len(list) > 0 {
		results, err := c.Tasks.Enqueue(ctx, list)
		for i, r := range results {
			switch {
			case r.Err == nil || r.There() != nil:
			case errors.Is(r.Err, task.ErrInvalid):
				refused[list[i]] = r.Err
			default:
				failed = cmp.Or(failed, r.Err)
			}
		}
		done := len(results)
		at, why := refusedOf(err, done, len(list))
		switch {
		case why != nil:
			refused[list[at]] = why
			list = slices.Concat(list[done:at], list[at+1:])
			continue
		case !errors.Is(err, remote.ErrToken):
			return cmp.Or(err, failed)
		}
		// The API does not say which task the token is not for. A token is for queues and types, and all tasks are of one queue.
		rest := list[done:]
		typ := rest[0].Type
		others := slices.DeleteFunc(slices.Clone(rest), func(t *task.Task) bool { return t.Type == typ })
		if len(others) == 0 {
			for _, t := range rest {
				refused[t] = err
			}
			return failed
		}
		same := slices.DeleteFunc(slices.Clone(rest), func(t *task.Task) bool { return t.Type != typ })
		if err := c.addEach(ctx, same, refused); err != nil {
			return err
		}
		list = others
	}
	return failed
}
