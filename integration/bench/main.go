// Command bench measures onbeat beside its peers and beside the least that Redis could do, on this machine, in one run. It prints
// a table for each scenario, in Markdown.
//
//	go run .                                       everything: an hour and a quarter
//	go run . -quick                                smaller numbers, one run each: some minutes
//	go run . -scenarios S1,S2 -peers onbeat,raw -runs 5
//	go run . -peers onbeat -before COMMIT          onbeat also by the bench of another commit of this repository, in turns
//	go run . -peers onbeat -scenarios F1,F2        the cost of each feature of onbeat; only if it is named
//
// Each run has a Redis (or a PostgreSQL) of its own and a process of its own, so that nothing measured is another's. A peer that is
// not installed is skipped and named. The bench fails if a task was not handled exactly once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// scenarios are all scenarios, in the order in which they are measured and shown.
var scenarios = []*scenario{enqueue, dispatch, typedDispatch, lag, cadence, idle, growth, schedules, fanout, partitioned, featuresAtOnce, featuresSteady}

// peers are the peers that are compared, in the order in which they are shown.
var peers = []string{"onbeat", "raw", "asynq", "faktory", "bullmq", "river"}

func scenarioOf(name string) *scenario {
	return scenarios[slices.IndexFunc(scenarios, func(s *scenario) bool { return s.name == name })]
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	run := compare
	if os.Getenv(jobEnv) != "" {
		run = beMeasured
	}
	err := run(ctx)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are the flags. The bench of another commit is given -scenarios, -peers, -runs, -quick and -out: they stay as they are.
type settings struct {
	scenarios, peers     []string
	runs                 int
	quick                bool
	before, profile, out string
}

func compare(ctx context.Context) error {
	var names []string
	s := settings{peers: peers}
	for _, one := range scenarios {
		names = append(names, one.name)
		if !one.aside {
			s.scenarios = append(s.scenarios, one.name)
		}
	}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	list := func(to *[]string, all []string, name, usage string) {
		f.Func(name, usage+" (default "+strings.Join(*to, ",")+")", func(text string) error {
			*to = strings.Split(text, ",")
			for _, one := range *to {
				if !slices.Contains(all, one) {
					return fmt.Errorf("%q is none of them", one)
				}
			}
			return nil
		})
	}
	list(&s.scenarios, names, "scenarios", "what to measure: "+strings.Join(names, ",")+";")
	list(&s.peers, peers, "peers", "whom to measure")
	f.IntVar(&s.runs, "runs", 0, "how often (default 3; with -quick 1)")
	f.BoolVar(&s.quick, "quick", false, "smaller numbers")
	f.StringVar(&s.before, "before", "", "another commit, whose onbeat takes turns with this one")
	f.StringVar(&s.profile, "profile", "", "existing folder for CPU profiles of Go peers and commandstats of Redis")
	f.StringVar(&s.out, "out", "", "file for the figures of each run, a JSON object a line")
	if err := f.Parse(os.Args[1:]); err != nil {
		return err
	}
	results, err := measure(ctx, &s)
	printTables(os.Stdout, results) // also those of a bench that was broken off
	if err == nil && s.out != "" {
		err = writeResults(s.out, results)
	}
	return err
}
