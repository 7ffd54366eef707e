package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/robfig/cron/v3"
)

// riverArgs are the arguments of all jobs.
type riverArgs struct {
	Job string `json:"job"`
}

func (riverArgs) Kind() string { return "beat" }

// startRiver configures the same periodic jobs in each replica. The elected leader inserts them
// (https://riverqueue.com/docs/periodic-jobs). "The periodic job scheduler is approximate and doesn't guarantee strong durability":
// "anytime a process quits or a new leader is elected, the whole process starts over"
// (https://pkg.go.dev/github.com/riverqueue/river#NewPeriodicJob). Jobs "should generally have an interval of at least 1 minute, and never
// less than one second" (https://pkg.go.dev/github.com/riverqueue/river#PeriodicSchedule). Next run times that outlive a leader are a
// feature of River Pro (https://riverqueue.com/docs/pro/durable-periodic-jobs), which is not compared. RunOnStart is the hedge that the
// page shows; without it River missed 21 slots of the job of five seconds, with it 3.
func startRiver(ctx context.Context, r *replica, run runner) (func() error, error) {
	pool, err := pgxpool.New(ctx, r.Store)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	driver := riverpgxv5.New(pool)
	workers := river.NewWorkers()
	jobs := map[string]job{}
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, x *river.Job[riverArgs]) error {
		j, known := jobs[x.Args.Job]
		if !known {
			return river.JobCancel(fmt.Errorf("this release has no job %s", x.Args.Job))
		}
		return run(ctx, j, strconv.FormatInt(x.ID, 10))
	}))
	cfg := &river.Config{Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}}, Workers: workers, Logger: log}
	for _, j := range r.Jobs {
		jobs[j.Name] = j
		when := river.PeriodicInterval(j.Every)
		if j.Wall { // "for schedules that require precise control over runtimes, we recommend the robfig/cron package"
			if when, err = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse("* * * * * *"); err != nil {
				return nil, err
			}
		}
		insert := func() (river.JobArgs, *river.InsertOpts) { return riverArgs{j.Name}, nil }
		cfg.PeriodicJobs = append(cfg.PeriodicJobs, river.NewPeriodicJob(when, insert, &river.PeriodicJobOpts{ID: j.Name, RunOnStart: !j.Wall}))
	}
	client, err := river.NewClient(driver, cfg)
	if err != nil {
		return nil, err
	}
	return func() error { return client.Stop(ctx) }, client.Start(ctx)
}

// migrateRiver makes River's tables.
func migrateRiver(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	return err
}
