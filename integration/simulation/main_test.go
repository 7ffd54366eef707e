package simulation

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/precise"
	"github.com/onbeat/onbeat/internal/testredis"
)

var (
	seedFlag = flag.Uint64("seed", 0, "the first seed; 0: one of the clock")
	forFlag  = flag.Duration("for", 0, "how long seeds are tried; 0: one seed if -seed is set, else ONBEAT_SIMULATE or 5s")
	planFlag = flag.String("plan", "", "play this plan and no other")
	once     = flag.Bool("first", false, "end at the first seed that shows a fault, and do not shrink it")
	keepFlag = flag.String("keep", "", "write the shrunk plan of the first fault, or the plan of the one seed, to this file, and all that happened beside it")
)

// slow is set in builds that play a plan much more slowly.
var slow bool

func TestMain(m *testing.M) {
	precise.Use(time.Sleep) // a system call would hold up virtual time
	debug.SetGCPercent(400) // a plan makes much garbage and keeps little
	testredis.Main(m)
}

// TestPlans plays every plan that was kept.
func TestPlans(t *testing.T) {
	files, err := filepath.Glob("testdata/plans/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if *planFlag != "" {
		files = []string{*planFlag}
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			p, err := loadPlan(file)
			if err != nil {
				t.Fatal(err)
			}
			if slow && *planFlag == "" && p.slots() > mostSlots/4 {
				t.Skip("it takes long with the race detector")
			}
			v := play(t, p)
			t.Log(v)
			keep(t, p, v)
			if len(v.faults) > 0 {
				t.Errorf("%s", v.blames())
			}
		})
	}
}

// TestSeeds plays the plans of new seeds for a while, on all processors. It ends at the first plan that shows a fault, and
// shrinks that plan. With -short it shrinks none, and goes on.
func TestSeeds(t *testing.T) {
	if *planFlag != "" {
		t.Skip("one plan was asked for")
	}
	seed, budget, one := *seedFlag, *forFlag, *seedFlag != 0 && *forFlag == 0
	if seed == 0 {
		seed = uint64(time.Now().UnixMilli()) % 1_000_000_000
	}
	if budget == 0 && !one {
		budget = 5 * time.Second
		if slow {
			budget = time.Second
		} else if text := os.Getenv("ONBEAT_SIMULATE"); text != "" {
			var err error
			if budget, err = time.ParseDuration(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("seeds from %d on", seed)
	s := &season{end: time.Now().Add(budget)}
	s.next.Store(seed)
	t.Run("workers", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			if one && i > 0 {
				break
			}
			t.Run(itoa(i), func(t *testing.T) {
				t.Parallel()
				for first := true; first || !one && time.Now().Before(s.end) && (s.failed.Load() == 0 || testing.Short()); first = false {
					s.play(t, s.next.Add(1)-1)
				}
			})
		}
	})
	s.report(t, seed)
}

// season is a time of trying seeds.
type season struct {
	end                                      time.Time
	next, failed                             atomic.Uint64
	plans, slots, tasks, runs, steps, faults atomic.Int64
	virtual                                  atomic.Int64
	slowest                                  atomic.Int64
	crash, freeze                            atomic.Int64 // the longest that a task waited because the leader was lost
}

// play plays the plan of one seed, and shrinks it if it shows a fault.
func (s *season) play(t *testing.T, seed uint64) {
	p := draw(seed)
	long := time.AfterFunc(time.Minute, func() { fmt.Fprintf(os.Stderr, "seed %d has been played for a minute\n", seed) })
	v := play(t, p)
	long.Stop()
	s.plans.Add(1)
	s.slots.Add(int64(v.slots))
	s.tasks.Add(int64(v.tasks))
	s.runs.Add(int64(v.runs))
	s.steps.Add(int64(v.steps))
	s.virtual.Add(int64(v.virtual))
	raise(&s.slowest, v.slowest)
	raise(&s.crash, v.passes["crash"])
	raise(&s.freeze, v.passes["freeze"])
	if len(v.faults) == 0 {
		if *seedFlag != 0 && *forFlag == 0 {
			keep(t, p, v)
		}
		return
	}
	s.faults.Add(int64(len(v.faults)))
	say := t.Errorf
	if file := os.Getenv("ONBEAT_SIMULATE_REPORT"); file != "" && *seedFlag == 0 && !v.isUnsafe() {
		say = reportTo(t, file)
	}
	say("seed %d:\n%s", seed, v.blames())
	if !s.failed.CompareAndSwap(0, seed) {
		return
	}
	keep(t, p, v)
	if testing.Short() || *once {
		return
	}
	small := shrink(t, p, v.faults[0].Kind, time.Minute)
	again := play(t, small)
	keep(t, small, again)
	if !t.Failed() {
		say("the same, shrunk, as a plan for testdata/plans:\n%s\n%s", small, again.blames())
		return
	}
	t.Logf("the same, shrunk, as a plan for testdata/plans:\n%s\n%s", small, again.blames())
}

// raise keeps the longest time.
func raise(to *atomic.Int64, d time.Duration) {
	for old := to.Load(); old < int64(d) && !to.CompareAndSwap(old, int64(d)); old = to.Load() {
	}
}

// isUnsafe reports whether a task ran that should not have.
func (v verdict) isUnsafe() bool {
	return slices.ContainsFunc(v.faults, func(f fault) bool {
		return slices.Contains([]string{"doubled", "fence", "early", "undead", "limit", "unhandled", "panic", "twice"}, f.Kind)
	})
}

// reportTo writes the faults of new seeds to a file instead of failing. When a change is judged, a late task or a missing
// slot in a new plan is news, but its cause may be older than the change. A task that should not have run at all always
// fails.
func reportTo(t *testing.T, file string) func(format string, args ...any) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return func(format string, args ...any) { fmt.Fprintf(f, format+"\n", args...) }
}

func (s *season) report(t *testing.T, seed uint64) {
	t.Helper()
	virtual := time.Duration(s.virtual.Load()).Round(time.Second)
	slowest := time.Duration(s.slowest.Load()).Round(100 * time.Microsecond)
	t.Logf("%d seeds from %d on: %v of virtual time, %d slots, %d tasks, %d runs, %d steps; the slowest start took %v, after a crash of the leader %v, after a freeze %v",
		s.plans.Load(), seed, virtual, s.slots.Load(), s.tasks.Load(), s.runs.Load(), s.steps.Load(), slowest, time.Duration(s.crash.Load()).Round(time.Millisecond),
		time.Duration(s.freeze.Load()).Round(time.Millisecond))
	name := os.Getenv("ONBEAT_SIMULATION_TABLE")
	if name == "" {
		return
	}
	row := fmt.Sprintf("| seeds | simulated | slots | tasks | runs | faults and operations | broken | slowest start |\n|---|---|---|---|---|---|---|---|\n"+
		"| %d, from %d | %.1f hours | %d | %d | %d | %d | %d | %v |\n", s.plans.Load(), seed, virtual.Hours(), s.slots.Load(), s.tasks.Load(),
		s.runs.Load(), s.steps.Load(), s.faults.Load(), slowest)
	if err := os.WriteFile(name, []byte(row), 0o600); err != nil {
		t.Error(err)
	}
}

// blames lists the first faults.
func (v verdict) blames() string {
	var b strings.Builder
	kinds := map[string]int{}
	for _, f := range v.faults {
		if kinds[f.Kind]++; kinds[f.Kind] <= 3 {
			fmt.Fprintf(&b, "  %s\n", f)
		}
	}
	for _, kind := range slices.Sorted(mapKeys(kinds)) {
		fmt.Fprintf(&b, "  %d %s\n", kinds[kind], kind)
	}
	return b.String()
}

// keep writes a plan and what happened to the files that -keep names.
func keep(t *testing.T, p *plan, v verdict) {
	t.Helper()
	if *keepFlag == "" {
		return
	}
	for file, text := range map[string]string{*keepFlag: p.String(), *keepFlag + ".log": strings.Join(v.lines, "\n")} {
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Error(err)
		}
	}
}
