package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverPeer is github.com/riverqueue/river on PostgreSQL.
type riverPeer struct {
	pool   *pgxpool.Pool
	insert *river.Client[pgx.Tx]
}

// riverConns is the size of the pool: the default of go-redis on two cores.
const riverConns = 20

func newRiver(ctx context.Context, url string) (*riverPeer, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = riverConns
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	driver := riverpgxv5.New(pool)
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	insert, err := river.NewClient(driver, &river.Config{Logger: slog.New(slog.DiscardHandler)})
	return &riverPeer{pool: pool, insert: insert}, err
}

// Kind makes typedPayload river.JobArgs, so River's handler is always a typed one.
func (typedPayload) Kind() string { return "bench" }

// beatArgs are the arguments of a periodic job.
type beatArgs struct {
	Job int `json:"job"`
}

func (beatArgs) Kind() string { return "beat" }

func riverParams(w work) river.InsertManyParams {
	p := w.payload()
	return river.InsertManyParams{
		Args:       typedPayload{N: numberOff + w.n, P: string(p[wrapping-2 : len(p)-2])},
		InsertOpts: &river.InsertOpts{ScheduledAt: w.due},
	}
}

// Bulk inserts by COPY.
func (r *riverPeer) Bulk(ctx context.Context, tasks []work) error {
	list := make([]river.InsertManyParams, len(tasks))
	for i, t := range tasks {
		list[i] = riverParams(t)
	}
	_, err := r.insert.InsertManyFast(ctx, list)
	return err
}

func (r *riverPeer) One(ctx context.Context, w work) error {
	p := riverParams(w)
	_, err := r.insert.Insert(ctx, p.Args, p.InsertOpts)
	return err
}

func (r *riverPeer) Dispatch(ctx context.Context, o options, handle func(n int)) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[typedPayload]) error {
		handle(job.Args.number())
		return nil
	}))
	cfg := riverConfig(o.concurrency, workers)
	if o.tuned {
		cfg.FetchCooldown, cfg.FetchPollInterval = 5*time.Millisecond, 20*time.Millisecond
	}
	for range max(o.servers, 1) {
		if err := r.start(ctx, cfg); err != nil {
			return err
		}
	}
	return nil
}

func riverConfig(concurrency int, workers *river.Workers) *river.Config {
	return &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: concurrency}},
		Workers: workers,
		Logger:  slog.New(slog.DiscardHandler),
	}
}

func (r *riverPeer) start(ctx context.Context, cfg *river.Config) error {
	c, err := river.NewClient(riverpgxv5.New(r.pool), cfg)
	if err != nil {
		return err
	}
	return c.Start(ctx)
}

// Cadence registers periodic jobs. The slot is the time that River says the job was scheduled for.
func (r *riverPeer) Cadence(ctx context.Context, jobs int, every time.Duration, run func(beat)) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[beatArgs]) error {
		run(beat{job.Args.Job, job.ScheduledAt, time.Now()})
		return nil
	}))
	cfg := riverConfig(max(100, jobs), workers)
	for i := range jobs {
		cfg.PeriodicJobs = append(cfg.PeriodicJobs, river.NewPeriodicJob(river.PeriodicInterval(every),
			func() (river.JobArgs, *river.InsertOpts) { return beatArgs{Job: i}, nil },
			&river.PeriodicJobOpts{ID: "job-" + strconv.Itoa(i)}))
	}
	return r.start(ctx, cfg)
}

// Left counts the jobs that are neither completed nor given up.
func (r *riverPeer) Left(ctx context.Context) (int64, error) {
	var n int64
	return n, r.pool.QueryRow(ctx, "select count(*) from river_job where state not in ('completed', 'cancelled', 'discarded')").Scan(&n)
}

func (r *riverPeer) Calls() int64 { return 0 }
