// Command bench measures onbeat beside its peers and beside the least that Redis could do, on this machine, in one run.
//
//	go run .                                   everything: the best part of an hour and a half
//	go run . -quick                            smaller numbers, one run each: some minutes
//	go run . -scenarios S1,S2 -peers onbeat,raw -runs 1
//	go run . -add -peers onbeat -scenarios S4  some of it again, the other figures stay
//	go run . -before COMMIT                    onbeat's rows also with the library of an earlier commit, taking turns
//	go run . -report                           writes the report again, from the figures that are there
//
// Each run has a Redis (or a database) of its own and a process of its own, so that nothing measured is another's. A
// peer that is not installed is skipped, and named. A run in which a task was not handled exactly once fails the bench.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/onbeat/onbeat/bench/report"
	"github.com/onbeat/onbeat/bench/scenario"
	"github.com/onbeat/onbeat/bench/wire"
)

// childEnv is set for a process that is measured.
const childEnv = "ONBEAT_BENCH_CHILD"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if os.Getenv(childEnv) != "" {
		child(ctx)
		return
	}
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) // what is deferred only restores signals
	}
}

// child does one job.
func child(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := wire.NewChild(os.Stdin, os.Stdout, func() { os.Exit(1) })
	if err == nil {
		err = scenario.Run(ctx, c)
	}
	switch {
	case err == nil:
		c.Say(wire.Event{Do: "done"})
	case c != nil:
		c.Say(wire.Event{Do: "error", Text: err.Error()})
	default:
		fmt.Fprintln(os.Stderr, err)
	}
}

// settings are the flags.
type settings struct {
	scenarios, peers, stores []string
	runs                     int
	quick, tiny, add         bool
	out, doc, profile        string
	before                   string
	log                      io.Writer
}

func run(ctx context.Context, args []string, log io.Writer) error {
	s := settings{log: log}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(log)
	scenarios := f.String("scenarios", "S1,S2,S2t,S3,S4,S5,S6,S7,S8", "what to measure")
	peers := f.String("peers", "onbeat,raw,asynq,bullmq,river", "whom")
	stores := f.String("stores", "memory,aof", "kinds of Redis for S1 and S2")
	f.IntVar(&s.runs, "runs", 0, "runs of each (default 3, or 1 where one will do; quick 1)")
	f.BoolVar(&s.quick, "quick", false, "smaller numbers")
	f.BoolVar(&s.tiny, "tiny", false, "very small numbers: does it work at all")
	f.BoolVar(&s.add, "add", false, "keep the figures that are there of other scenarios and peers")
	f.StringVar(&s.out, "out", "results/latest.jsonl", "the figures")
	f.StringVar(&s.doc, "doc", "../docs/performance.md", "the report; empty: none")
	f.StringVar(&s.profile, "profile", "", "folder for pprof files of Go peers and commandstats of Redis")
	f.StringVar(&s.before, "before", "", "an earlier commit, whose library takes turns with this one")
	only := f.Bool("report", false, "measure nothing, write the report of the figures that are there")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	s.scenarios, s.peers, s.stores = list(*scenarios), list(*peers), list(*stores)
	if s.runs <= 0 && (s.quick || s.tiny) {
		s.runs = 1
	}
	if !*only {
		if err := measure(ctx, &s); err != nil {
			return err
		}
	}
	if s.doc == "" {
		return nil
	}
	return report.Write(s.out, s.doc)
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}
