package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/integration/internal/beats"
	"github.com/onbeat/onbeat/internal/trial"
)

// stage is where one peer plays the story: two hosts, a store and the recorder, by whose clock all is judged.
type stage struct {
	script
	peer    string
	skewed  string // the program of the second host, if its clock is ahead
	dir     string
	rec     *trial.Recorder
	store   store
	dice    *rand.Rand
	hosts   [2]*trial.Process
	started []*trial.Process
	release int
	seen    int      // arrivals
	crashes []string // replicas that ended by themselves at their start

	acts               []act
	until              time.Time
	down               []beats.Span // no replica was there
	storeGone, changed beats.Span
	settled, droppedAt time.Time
}

func newStage(ctx context.Context, peer string, of script, skewed string, run int) (s *stage, err error) {
	s = &stage{script: of, peer: peer, skewed: skewed, dice: newDice(run)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.dir, err = os.MkdirTemp("", "onbeat-beat-"); err != nil {
		return s, err
	}
	if s.rec, err = trial.NewRecorder(); err != nil {
		return s, err
	}
	s.store, err = openStore(ctx, peer)
	return s, err
}

func (s *stage) close() {
	for _, p := range s.started {
		p.Kill()
	}
	if s.store != nil {
		s.store.close()
	}
	if s.rec != nil {
		s.rec.Close()
	}
	_ = os.RemoveAll(s.dir)
}

func (s *stage) begin(name string) { s.acts = append(s.acts, act{name, time.Now()}) }

// patience is how long a replica may take to start, and to end.
const patience = 30 * time.Second

// start starts a replica of the present release on a host, and returns when it says that it works. A replica that ends by itself
// before that is started again, as by a supervisor, four times at most.
func (s *stage) start(ctx context.Context, host int) error {
	for n := 1; ; n++ {
		p, err := s.launch(host)
		if err != nil {
			return err
		}
		err = s.wait(ctx, p.Name+" to be ready", func() (bool, error) {
			if p.HasExited() {
				return false, fmt.Errorf("%s %w: %s", p.Name, errCrashed, s.lastWords(p))
			}
			return slices.ContainsFunc(s.news(), func(a trial.Arrival) bool { return a.Schedule == ready && a.Instance == p.Name }), nil
		})
		if !errors.Is(err, errCrashed) || n == 5 {
			return err
		}
		s.crashes = append(s.crashes, err.Error())
		s.sleep(ctx, restart)
	}
}

var errCrashed = errors.New("ended by itself")

func (s *stage) launch(host int) (*trial.Process, error) {
	name := fmt.Sprintf("%c%d", 'a'+host, len(s.started))
	r := replica{Peer: s.peer, Name: name, Release: s.release, Recorder: s.rec.URL(""), Store: s.store.address()}
	r.Jobs, r.Gone = s.jobsOf(s.release)
	what, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	of := trial.Program{Env: []string{replicaEnv + "=" + string(what)}}
	isAhead := host == 1 && s.skewed != ""
	if isAhead {
		of.Path = s.skewed
	}
	if s.peer == "bullmq" {
		of.Path = "node"
		if isAhead {
			of.Args = []string{"--import", "./" + filepath.Join("..", "node", "ahead.mjs")}
			of.Env = append(of.Env, "ONBEAT_BEAT_AHEAD="+strconv.FormatInt(ahead.Milliseconds(), 10))
		}
		of.Args = append(of.Args, filepath.Join("..", "node", "beat.mjs"))
	}
	p, err := trial.Start(name, filepath.Join(s.dir, name+".log"), of)
	if err == nil {
		s.started = append(s.started, p)
		s.hosts[host] = p
	}
	return p, err
}

// stop sends a replica SIGTERM, and waits until it has ended. A replica that does not end is killed, as by a supervisor.
func (s *stage) stop(ctx context.Context, p *trial.Process) error {
	if err := p.Signal(trial.SigTerm); err != nil {
		return err
	}
	err := s.wait(ctx, "the end of "+p.Name, func() (bool, error) { return p.HasExited(), nil })
	if errors.Is(err, errStuck) {
		fmt.Fprintf(os.Stderr, "%s: %s did not end at SIGTERM within %s\n", s.peer, p.Name, patience)
		p.Kill()
		return nil
	}
	return err
}

var errStuck = errors.New("it took too long")

func (s *stage) wait(ctx context.Context, what string, ok func() (bool, error)) error {
	for from := time.Now(); ; s.sleep(ctx, 10*time.Millisecond) {
		if yes, err := ok(); yes || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Since(from) > patience {
			return fmt.Errorf("waited for %s: %w", what, errStuck)
		}
	}
}

// news are the latest arrivals: those that came since the call before, and some before them.
func (s *stage) news() []trial.Arrival {
	if n := s.rec.Count(); n == s.seen {
		return nil
	}
	all := s.rec.Arrivals()
	from := max(0, s.seen-10)
	s.seen = len(all)
	return all[from:]
}

// hostOf finds the host of an instance, or -1 if it is gone.
func (s *stage) hostOf(instance string) int {
	return slices.IndexFunc(s.hosts[:], func(p *trial.Process) bool { return p != nil && p.Name == instance })
}

func (s *stage) lastWords(p *trial.Process) string {
	text, err := p.Log()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return errors.Join(errors.New(strings.Join(lines[max(0, len(lines)-5):], " / ")), err).Error()
}

// settle waits until all work that was broken off is done again, but no longer than the peer may take for that.
func (s *stage) settle(ctx context.Context, most time.Duration) {
	for from := time.Now(); time.Since(from) < most && ctx.Err() == nil; s.sleep(ctx, time.Second) {
		if !slices.ContainsFunc([]string{long, overrun}, func(name string) bool { return s.unfinished(name) }) && time.Since(from) > 4*time.Second {
			break
		}
	}
}

// unfinished reports whether a run of the story was broken off, and has not been done again.
func (s *stage) unfinished(name string) bool {
	done := map[string]bool{}
	for _, r := range s.runs(name) {
		if _, known := done[r.ID]; known || r.At.Before(s.until) {
			done[r.ID] = done[r.ID] || r.Done
		}
	}
	for _, ok := range done {
		if !ok {
			return true
		}
	}
	return false
}

// runs are the runs of a job.
func (s *stage) runs(name string) (list []beats.Run) {
	for _, a := range s.rec.Arrivals() {
		if a.Schedule == name {
			list = append(list, beats.Run{ID: a.ID, At: a.At, Done: !a.Ended.IsZero() && !a.GivenUp})
		}
	}
	return list
}
