package peer

import (
	"context"
	"errors"
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

// riverConns is the size of the pool: what go-redis's default is on two cores.
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

// Kind makes benchArgs river.JobArgs, so River's handler is always a typed one.
func (benchArgs) Kind() string { return "bench" }

// beatArgs are those of a periodic job.
type beatArgs struct {
	Job int `json:"job"`
}

func (beatArgs) Kind() string { return "beat" }

func riverParams(t Task) river.InsertManyParams {
	p := payload(t)
	return river.InsertManyParams{
		Args:       benchArgs{N: numberOff + t.N, P: string(p[wrapping-2 : len(p)-2])},
		InsertOpts: &river.InsertOpts{ScheduledAt: t.Due},
	}
}

// Bulk inserts by COPY.
func (r *riverPeer) Bulk(ctx context.Context, tasks []Task) error {
	list := make([]river.InsertManyParams, len(tasks))
	for i, t := range tasks {
		list[i] = riverParams(t)
	}
	_, err := r.insert.InsertManyFast(ctx, list)
	return err
}

func (r *riverPeer) One(ctx context.Context, t Task) error {
	p := riverParams(t)
	_, err := r.insert.Insert(ctx, p.Args, p.InsertOpts)
	return err
}

func (r *riverPeer) Dispatch(ctx context.Context, o Options, handle Handler) (func() error, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[benchArgs]) error {
		handle(job.Args.number())
		return nil
	}))
	cfg := riverConfig(o.Concurrency, workers)
	if o.Tuned {
		cfg.FetchCooldown, cfg.FetchPollInterval = 5*time.Millisecond, 20*time.Millisecond
	}
	var stops []func() error
	for range max(o.Servers, 1) {
		stop, err := r.start(ctx, cfg)
		if err != nil {
			return nil, err
		}
		stops = append(stops, stop)
	}
	return joinStops(stops), nil
}

func riverConfig(concurrency int, workers *river.Workers) *river.Config {
	return &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: concurrency}},
		Workers: workers,
		Logger:  slog.New(slog.DiscardHandler),
	}
}

func (r *riverPeer) start(ctx context.Context, cfg *river.Config) (func() error, error) {
	c, err := river.NewClient(riverpgxv5.New(r.pool), cfg)
	if err != nil {
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	return func() error {
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer done()
		return c.Stop(ctx)
	}, nil
}

// Cadence registers periodic jobs. The slot is what River says the job was scheduled for.
func (r *riverPeer) Cadence(ctx context.Context, jobs int, every time.Duration, beat func(Beat)) (func() error, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[beatArgs]) error {
		beat(Beat{Job: job.Args.Job, Slot: job.ScheduledAt, Start: time.Now()})
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
	err := r.pool.QueryRow(ctx, "select count(*) from river_job where state not in ('completed', 'cancelled', 'discarded')").Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return n, err
}

func (r *riverPeer) Calls() int64 { return 0 }

func (r *riverPeer) Close() error { r.pool.Close(); return nil }
