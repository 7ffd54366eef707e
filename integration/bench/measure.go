package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/onbeat/onbeat/integration/internal/postgres"
)

// bench is a bench under way.
type bench struct {
	*settings
	other   *otherBench // the bench that takes turns with this one, or nil
	found   map[string]setting
	program string // onbeat, once a scenario needs it
	faktory string // its server's program
	results []result
}

// measure measures all that the settings name. If a scenario fails, it returns the results so far and the error.
func measure(ctx context.Context, s *settings) ([]result, error) {
	b := &bench{settings: s, found: map[string]setting{}}
	dir, err := os.MkdirTemp("", "onbeat-bench-programs-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s.peers = slices.DeleteFunc(slices.Clone(s.peers), func(p string) bool {
		err := b.install(ctx, p, dir)
		if err != nil {
			fmt.Fprintf(os.Stderr, "skipping %s: %v\n", p, err)
		}
		return err != nil
	})
	fmt.Println(machine(ctx))
	if s.before != "" {
		var err error
		if b.other, err = buildOther(ctx, s.before); err != nil {
			return nil, err
		}
		defer b.other.remove()
	}
	if slices.ContainsFunc(scenarios, func(one *scenario) bool { return one.aside && slices.Contains(s.scenarios, one.name) }) {
		b.program = filepath.Join(dir, "onbeat")
		if _, err := command(ctx, filepath.Join("..", ".."), "go", "build", "-o", b.program, "./cmd/onbeat"); err != nil {
			return nil, err
		}
	}
	for _, one := range scenarios {
		if slices.Contains(s.scenarios, one.name) {
			if err := b.measure(ctx, one); err != nil {
				return b.results, err
			}
		}
	}
	return b.results, nil
}

// install finds out whether a peer can run here, and builds what it needs.
func (b *bench) install(ctx context.Context, peer, dir string) error {
	switch peer {
	case "river":
		_, err := postgres.Find()
		return err
	case "bullmq":
		return findBullMQ()
	}
	_, err := exec.LookPath("redis-server")
	if err == nil && peer == "faktory" {
		b.faktory, err = buildFaktory(ctx, dir)
	}
	return err
}

// cell is measured in each run: one peer with one set of parameters.
type cell struct {
	peer   string
	params params
}

// measure measures one scenario. In each run all peers take their turn, so that they share the better and the worse minutes of
// the machine. So does the bench of the other commit, each second time before this one's.
func (b *bench) measure(ctx context.Context, s *scenario) error {
	cells, err := b.cells(ctx, s)
	if err != nil {
		return err
	}
	runs := b.runs
	if runs <= 0 {
		runs = 3
		if b.quick {
			runs = 1
		}
	}
	for run := 1; run <= runs; run++ {
		turns := []func() error{func() error {
			for _, c := range cells {
				if run > 1 && s.once && c.peer != "onbeat" {
					continue
				}
				m, err := b.run(ctx, &job{Peer: c.peer, Scenario: s.name, Params: c.params, Run: run})
				if err != nil {
					return err
				}
				b.results = append(b.results, result{c.peer, "", s.name, c.params, run, m})
			}
			return nil
		}}
		if b.other != nil {
			turns = append(turns, func() error {
				list, err := b.other.run(ctx, b.settings, s.name, run)
				b.results = append(b.results, list...)
				return err
			})
		}
		if run%2 == 0 {
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			if err := turn(); err != nil {
				return err
			}
		}
	}
	return nil
}

// cells are what a scenario measures.
func (b *bench) cells(ctx context.Context, s *scenario) (cells []cell, err error) {
	for _, peer := range b.peers {
		for _, p := range s.plan(b.quick, peer) {
			if p.Best {
				if err := b.findBest(ctx, s, peer, &p); err != nil {
					return nil, err
				}
			}
			p.Store = "memory"
			if peer == "river" {
				p.Store = "postgres"
			}
			cells = append(cells, cell{peer, p})
			if s.onDisk && !b.quick && peer != "river" && peer != "faktory" { // Faktory writes snapshots, by a configuration of its own
				p.Store = "aof"
				cells = append(cells, cell{peer, p})
			}
		}
	}
	return cells, nil
}

// findBest runs each candidate once, with half of the tasks and in memory, and sets the fastest. A quick bench takes the first.
func (b *bench) findBest(ctx context.Context, s *scenario, peer string, p *params) error {
	p.Tuned = peer == "river"
	best, ok := b.found[peer]
	if !ok {
		best = candidates[peer][0]
	}
	most := 0.0
	for _, c := range candidates[peer] {
		if ok || b.quick {
			break
		}
		try := *p
		try.Tasks, try.Servers, try.Concurrency = p.Tasks/2, c.servers, c.concurrency
		m, err := b.run(ctx, &job{Peer: peer, Scenario: s.name, Params: try})
		if err != nil {
			return err
		}
		if rate := m["tasks_per_s"]; rate > most {
			most, best = rate, c
		}
	}
	b.found[peer] = best
	p.Servers, p.Concurrency = best.servers, best.concurrency
	return nil
}

// run makes one run in a process of its own, and says how it went.
func (b *bench) run(ctx context.Context, j *job) (m metrics, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	j.Profile, j.Program, j.Faktory = b.profile, b.program, b.faktory
	from, what := time.Now(), fmt.Sprintf("%s run %d: %s", j.Scenario, j.Run, rowLabel(j.Peer, "", &j.Params))
	out, err := self(ctx, j).Output()
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	fmt.Fprintf(os.Stderr, "%s, %s:%s\n", what, time.Since(from).Round(10*time.Millisecond), scenarioOf(j.Scenario).brief(m))
	return m, nil
}

// self is this program as a process that does a job.
func self(ctx context.Context, j *job) *exec.Cmd {
	program, _ := os.Executable()
	return process(ctx, j, program)
}

func process(ctx context.Context, j *job, program string, args ...string) *exec.Cmd {
	text, _ := json.Marshal(j)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), jobEnv+"="+string(text)), os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that it ends its server
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// worker is the program that works as a peer on a server that is there.
func worker(ctx context.Context, j *job) *exec.Cmd {
	if j.Peer == "bullmq" {
		return process(ctx, j, "node", "--expose-gc", filepath.Join("node", "bullmq.mjs"))
	}
	return self(ctx, j)
}
