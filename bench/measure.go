package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/onbeat/onbeat/bench/report"
	"github.com/onbeat/onbeat/bench/server"
	"github.com/onbeat/onbeat/bench/wire"
)

// bench is a bench under way.
type bench struct {
	*settings
	postgres *server.Postgres // started when first needed
	node     string
	script   string                 // of BullMQ
	earlier  *earlier               // what takes turns with onbeat, or nil
	found    map[string]wire.Params // the best of each peer, in memory
	out      *json.Encoder
}

// measure goes through the plan, and writes each run's figures as it ends.
func measure(ctx context.Context, s *settings) error {
	b := &bench{settings: s, found: map[string]wire.Params{}}
	missing := b.look()
	for _, p := range s.peers {
		if err := missing[p]; err != nil {
			fmt.Fprintf(s.log, "skipping %s: %v\n", p, err)
		}
	}
	cells := skipped(plan(s), missing)
	if len(cells) == 0 {
		return errors.New("nothing to measure")
	}
	if err := os.MkdirAll(filepath.Dir(s.out), 0o755); err != nil {
		return err
	}
	if s.before != "" {
		var err error
		if b.earlier, err = build(ctx, s.before); err != nil {
			return err
		}
		defer b.earlier.remove()
	}
	partial := s.out + ".tmp" // a bench that is broken off leaves the last figures as they were
	f, err := os.Create(partial)
	if err != nil {
		return err
	}
	defer f.Close()
	if s.add {
		if err := report.Copy(f, s.out, func(r *report.Result) bool {
			return !slices.Contains(s.scenarios, r.Scenario) || !slices.Contains(s.peers, r.Peer)
		}); err != nil {
			return err
		}
	}
	b.out = json.NewEncoder(f)
	defer func() {
		if b.postgres != nil {
			b.postgres.Stop()
		}
	}()
	for i, c := range cells {
		if err := b.cell(ctx, c, fmt.Sprintf("%d/%d", i+1, len(cells))); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := report.WriteMachine(ctx, s.out, missing); err != nil {
		return err
	}
	return os.Rename(partial, s.out)
}

// look finds out which peers cannot run here.
func (b *bench) look() map[string]error {
	missing := map[string]error{}
	if _, err := exec.LookPath("redis-server"); err != nil {
		for _, p := range []string{"onbeat", "raw", "asynq", "bullmq"} {
			missing[p] = errors.New("redis-server is not on the PATH")
		}
	}
	if _, err := server.FindPostgres(); err != nil {
		missing["river"] = err
	}
	var err error
	if b.node, err = exec.LookPath("node"); err != nil {
		missing["bullmq"] = errors.New("node is not on the PATH")
		return missing
	}
	b.script = filepath.Join("node", "bullmq.mjs")
	if _, err := os.Stat(filepath.Join("node", "node_modules", "bullmq")); err != nil {
		missing["bullmq"] = errors.New("not installed: run `npm install --no-package-lock` in bench/node")
	}
	return missing
}

// cell makes the runs of a cell. What is compared takes turns, so that it shares the machine's better and worse minutes; each
// second run the other way round.
func (b *bench) cell(ctx context.Context, c cell, place string) error {
	if len(c.candidates) > 0 {
		var err error
		if c.params, err = b.search(ctx, c, place); err != nil {
			return err
		}
	}
	for run := 1; run <= c.runs; run++ {
		turns := b.turns(c, run)
		if run%2 == 0 {
			slices.Reverse(turns)
		}
		for _, j := range turns {
			if _, err := b.once(ctx, j, place); err != nil {
				return err
			}
		}
	}
	return nil
}

// turns are the jobs of one run.
func (b *bench) turns(c cell, run int) (jobs []wire.Job) {
	for _, name := range c.scenarios {
		j := wire.Job{Peer: c.peer, Scenario: name, Params: c.params, Run: run}
		jobs = append(jobs, j)
		if c.peer == "onbeat" && b.earlier != nil {
			j.Commit = b.earlier.commit
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// search runs each candidate once and returns the fastest, as the best. What is best in memory is also taken for an append-only file.
func (b *bench) search(ctx context.Context, c cell, place string) (wire.Params, error) {
	best, most := c.params, 0.0
	if w, ok := b.found[c.peer]; ok && best.Store == "aof" {
		best.Concurrency, best.Servers, best.Tuned = w.Concurrency, w.Servers, w.Tuned
		return best, nil
	}
	for _, w := range c.candidates {
		m, err := b.once(ctx, wire.Job{Peer: c.peer, Scenario: c.scenarios[0], Params: w}, place)
		if err != nil {
			return best, err
		}
		if m["tasks_per_s"] > most {
			most = m["tasks_per_s"]
			best.Concurrency, best.Servers, best.Tuned = w.Concurrency, w.Servers, w.Tuned
		}
	}
	b.found[c.peer] = best
	return best, nil
}

// once makes one run, and writes its figures.
func (b *bench) once(ctx context.Context, j wire.Job, place string) (wire.Metrics, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	from := time.Now()
	j.Profile = b.profile
	m, err := b.run(ctx, j)
	text, _ := json.Marshal(j.Params)
	who := j.Peer
	if j.Commit != "" {
		who += " of " + j.Commit
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s run %d %s: %w", j.Scenario, who, j.Run, text, err)
	}
	fmt.Fprintf(b.log, "%s %s %s run %d %s %s: %s\n", place, j.Scenario, who, j.Run, text, time.Since(from).Round(10*time.Millisecond), brief(m))
	return m, b.out.Encode(report.Result{Peer: j.Peer, Commit: j.Commit, Scenario: j.Scenario, Params: j.Params, Run: j.Run, Metrics: m})
}

// brief is a line of the figures that say most.
func brief(m wire.Metrics) string {
	s := ""
	for _, name := range []string{
		"tasks_per_s", "redis_cpu_us_per_task", "client_cpu_us_per_task", "allocs_per_task", "bytes_per_task", "load_bytes_per_task",
		"lag_p50_ms", "lag_p99_ms", "jitter_p99_ms", "sleep_p99_ms", "ping_p99_ms", "missed", "doubled",
		"calls_per_s_per_instance", "calls_per_s", "list_ms", "scrape_ms",
		"lag_max_ms", "takeover_newer_knows_ms", "takeover_resign_knows_ms", "leader_mb", "empty_claims",
	} {
		if v, ok := m[name]; ok {
			s += fmt.Sprintf(" %s=%.4g", name, v)
		}
	}
	if s == "" {
		return "no figures"
	}
	return s[1:]
}

// run makes one run with servers of its own.
func (b *bench) run(ctx context.Context, j wire.Job) (wire.Metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	var srv reader
	if j.Params.Store == "postgres" {
		if b.postgres == nil {
			var err error
			if b.postgres, err = server.StartPostgres(ctx); err != nil {
				return nil, err
			}
		}
		url, err := b.postgres.NewDatabase(ctx)
		if err != nil {
			return nil, err
		}
		j.Postgres, srv = url, b.postgres
	} else {
		r, err := server.StartRedis(ctx, j.Params.Store == "aof", j.Peer == "bullmq" && j.Params.Tuned)
		if err != nil {
			return nil, err
		}
		defer r.Stop()
		j.Redis, srv = r.Addr, r
		if b.profile != "" {
			defer b.saveCommands(r, &j)
		}
	}
	f := &family{ctx: ctx, srv: srv, job: j, metrics: wire.Metrics{}}
	if err := f.run(func() (*exec.Cmd, error) { return b.start(ctx, &j) }); err != nil {
		return nil, err
	}
	return f.metrics, nil
}

func (b *bench) saveCommands(r *server.Redis, j *wire.Job) {
	text, err := r.Commands(context.Background())
	if err == nil {
		err = os.WriteFile(filepath.Join(b.profile, j.Title()+".commandstats.txt"), []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(b.log, "commandstats:", err)
	}
}

// start makes the command of a child.
func (b *bench) start(ctx context.Context, j *wire.Job) (*exec.Cmd, error) {
	if j.Peer == "bullmq" {
		return exec.CommandContext(ctx, b.node, "--expose-gc", b.script), nil
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if j.Commit != "" {
		program = b.earlier.program
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(slices.Clone(os.Environ()), childEnv+"=1")
	return cmd, nil
}
