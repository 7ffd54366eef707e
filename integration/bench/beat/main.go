// Command beat puts the same periodic jobs through the same story by onbeat and by its peers: rolling updates, kills, freezes, a store
// that is away, and a single replica that is stopped and started again. One recorder sees when each run begins and ends, and judges all
// of them alike.
//
//	go run .                                     all peers, both stories: half an hour
//	go run . -short                              a story of a minute
//	go run . -peers onbeat,asynq -runs 3 -out FILE
//	go run . -from FILE -picture FILE.svg        the table and the picture of an earlier measurement
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/onbeat/onbeat/integration/internal/postgres"
)

// names are the peers, in the order in which they are shown.
var names = []string{"onbeat", "asynq", "gocron locker", "gocron elector", "cron and lock", "river", "bullmq"}

// The stories.
const (
	plain  = "plain"
	clocks = "clocks" // the clock of the second host is ahead
)

func main() {
	if os.Getenv(replicaEnv) != "" {
		if err := beReplica(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := compare(ctx)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "beat:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	peers, stories     []string
	runs, beside       int
	short              bool
	out, from, picture string
}

func compare(ctx context.Context) error {
	s := settings{peers: names, stories: []string{plain, clocks}}
	f := flag.NewFlagSet("beat", flag.ContinueOnError)
	list := func(to *[]string, name, usage string) {
		all := *to
		f.Func(name, usage+" (default "+strings.Join(all, ",")+")", func(text string) error {
			*to = strings.Split(text, ",")
			for _, one := range *to {
				if !slices.Contains(all, one) {
					return fmt.Errorf("%q is none of them", one)
				}
			}
			return nil
		})
	}
	list(&s.peers, "peers", "who plays")
	list(&s.stories, "stories", "what is played")
	f.IntVar(&s.runs, "runs", 1, "how often")
	f.IntVar(&s.beside, "beside", 4, "how many stories side by side")
	f.BoolVar(&s.short, "short", false, "a story of a minute")
	f.StringVar(&s.out, "out", "", "file for the results, a JSON object a line; results in it stay")
	f.StringVar(&s.from, "from", "", "file of earlier results: show these, and play nothing")
	f.StringVar(&s.picture, "picture", "", "file for a picture, an SVG")
	if err := f.Parse(os.Args[1:]); err != nil {
		return err
	}
	var results []*result
	var err error
	if s.from != "" {
		results, err = read(s.from)
	} else {
		results, err = s.play(ctx)
	}
	printTables(os.Stdout, results)
	if s.picture != "" && len(results) > 0 {
		err = errors.Join(err, os.WriteFile(s.picture, []byte(picture(results)), 0o644))
	}
	return err
}

// installed finds out whether a peer can be played.
func installed(peer string) error {
	switch peer {
	case "river":
		_, err := postgres.Find()
		return err
	case "bullmq":
		if _, err := os.Stat(filepath.Join("..", "node", "node_modules", "bullmq", "package.json")); err != nil {
			return errors.New("not installed: run `npm install` in integration/bench/node")
		}
		_, err := exec.LookPath("node")
		return err
	}
	return nil
}

// play plays all that the settings name, some side by side. If a story fails, it returns the results so far and the error.
func (s *settings) play(ctx context.Context) ([]*result, error) {
	of := wholeStory
	if s.short {
		of = shortStory
	}
	dir, err := os.MkdirTemp("", "onbeat-beat-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	skewed := ""
	if slices.Contains(s.stories, clocks) {
		if skewed, err = buildAhead(ctx, dir); err != nil {
			return nil, err
		}
	}
	var mu sync.Mutex
	var results []*result
	var all sync.WaitGroup
	free := make(chan struct{}, s.beside)
	var failed error
	for run := range s.runs {
		for _, story := range s.stories {
			for _, peer := range s.peers {
				if err := installed(peer); err != nil {
					if run == 0 {
						fmt.Fprintf(os.Stderr, "skipping %s: %v\n", peer, err)
					}
					continue
				}
				free <- struct{}{}
				all.Go(func() {
					defer func() { <-free }()
					program := ""
					if story == clocks {
						program = skewed
					}
					r, err := tryPlay(ctx, peer, story, of, program, run+1)
					mu.Lock()
					defer mu.Unlock()
					failed = errors.Join(failed, err)
					if r != nil {
						results = append(results, r)
						failed = errors.Join(failed, s.keep(r))
					}
				})
			}
		}
	}
	all.Wait()
	return results, failed
}

// attempts is how often a story is played while the machine is too busy for it.
const attempts = 3

func tryPlay(ctx context.Context, peer, story string, of script, skewed string, run int) (r *result, err error) {
	for n := range attempts {
		from := time.Now()
		if r, err = playOne(ctx, peer, of, skewed, run); err != nil {
			return nil, fmt.Errorf("%s, %s, run %d: %w", peer, story, run, err)
		}
		r.Story, r.Run = story, run
		fmt.Fprintf(os.Stderr, "%s, %s, run %d: %s; stall %.0f ms, %.2f cores busy\n", peer, story, run, time.Since(from).Round(time.Second), r.Machine.Stall, r.Machine.Busy)
		if !r.Starved {
			return r, nil
		}
		fmt.Fprintf(os.Stderr, "%s, %s, run %d: the machine held this program up, so attempt %d does not count\n", peer, story, run, n+1)
	}
	return r, nil
}

// redoneWithin is how long broken off work may take to be done again. asynq is the slowest that does: its recoverer looks each minute for
// leases that ran out, and retries then. River does it after an hour by default, and the others keep nothing.
func redoneWithin(peer string) time.Duration {
	if slices.Contains([]string{"onbeat", "asynq", "bullmq"}, peer) {
		return 100 * time.Second
	}
	return 10 * time.Second
}

func playOne(ctx context.Context, peer string, of script, skewed string, run int) (*result, error) {
	s, err := newStage(ctx, peer, of, skewed, run)
	if err != nil {
		return nil, err
	}
	defer s.close()
	watched, done := context.WithCancel(ctx)
	machine := watch(watched)
	err = s.play(ctx)
	done()
	busy := <-machine
	if err != nil {
		return nil, err
	}
	s.settle(ctx, redoneWithin(peer))
	r := s.result()
	r.Machine, r.Starved = busy, busy.Stall > float64(starved.Milliseconds())
	if peer == "onbeat" {
		r.Own, err = s.ask(ctx)
	}
	return r, err
}

// keep adds a result to the file.
func (s *settings) keep(r *result) error {
	if s.out == "" {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(s.out, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

func read(path string) (list []*result, err error) {
	text, err := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		r := &result{}
		err = errors.Join(err, json.Unmarshal([]byte(line), r))
		list = append(list, r)
	}
	return list, err
}
