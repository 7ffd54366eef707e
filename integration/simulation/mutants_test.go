package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// mutant is a fault that is put back on purpose: a text in a file, and its replacement. A kept plan must show the fault, or
// seeds must find it.
type mutant struct {
	name  string
	edits []edit
	plan  string   // in testdata/plans; "" leaves it to seeds
	kinds []string // one of these has to be blamed
}

type edit struct{ file, old, text string }

// always is the plan whose mutant every run tries: one of the grid (promise 7). The model breaks the other promises, and building
// a mutant takes 20 seconds of a processor.
const always = "16-lost-is-not-gone"

// TestMutants_areFound puts faults back, and demands that the simulation shows each. ONBEAT_SOAK=1 tries all mutants, and
// counts the seeds that it takes to find each, for at most ONBEAT_MUTANT_SEEDS (3m). ONBEAT_MUTANTS=1 tries all mutants with
// a plan.
func TestMutants_areFound(t *testing.T) {
	soak := testredis.Soak()
	switch {
	case *planFlag != "" || *seedFlag != 0:
		t.Skip("a plan or a seed was asked for")
	case testing.Short(), slow:
		t.Skip("it builds the tests anew for each")
	}
	list := mutants()
	if !soak { // those that only seeds find take long
		list = slices.DeleteFunc(list, func(m mutant) bool { return m.plan == "" })
	}
	if !soak && os.Getenv("ONBEAT_MUTANTS") == "" {
		list = slices.DeleteFunc(list, func(m mutant) bool { return m.plan != always })
	}
	budget := 3 * time.Minute
	if text := os.Getenv("ONBEAT_MUTANT_SEEDS"); text != "" {
		var err error
		budget, err = time.ParseDuration(text)
		must(t, err)
	}
	table := soakTable(t)
	if soak {
		fmt.Fprint(table, "\n| put back | its plan | found in so many seeds |\n|---|---|---|\n")
	}
	for _, m := range list {
		t.Run(m.name, func(t *testing.T) {
			program := m.build(t)
			if m.plan != "" {
				m.mustShow(t, program)
			}
			if !soak {
				return
			}
			seeds := m.seeds(t, program, budget)
			fmt.Fprintf(table, "| %s | %s | %s |\n", m.name, m.plan, seeds)
		})
	}
}

// Each fault still has its place in the code. This is a test of its own, because one run builds only a few mutants.
func TestMutants_haveTheirPlaces(t *testing.T) {
	t.Parallel()
	for _, m := range mutants() {
		for _, e := range m.edits {
			b, err := os.ReadFile(filepath.Join("..", "..", e.file))
			must(t, err)
			if n := bytes.Count(b, []byte(e.old)); n != 1 {
				t.Errorf("%s: %s has %d places %q, want 1: mend the mutant", m.name, e.file, n, e.old)
			}
		}
	}
}

// build makes the tests of this package with the fault in them.
func (m *mutant) build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	overlay := map[string]map[string]string{"Replace": {}}
	for i, e := range m.edits {
		file, err := filepath.Abs(filepath.Join("..", "..", e.file))
		must(t, err)
		from := file
		if earlier := overlay["Replace"][file]; earlier != "" {
			from = earlier
		}
		b, err := os.ReadFile(from)
		must(t, err)
		if n := bytes.Count(b, []byte(e.old)); n != 1 {
			t.Fatalf("%s has %d places %q, want 1: mend the mutant", e.file, n, e.old)
		}
		to := filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(file)))
		must(t, os.WriteFile(to, bytes.Replace(b, []byte(e.old), []byte(e.text), 1), 0o600))
		overlay["Replace"][file] = to
	}
	b, err := json.Marshal(overlay)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "overlay.json"), b, 0o600))
	program := filepath.Join(dir, "simulation.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-ldflags=-s -w", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// mustShow demands that the mutant's plan fails, and says why.
func (m *mutant) mustShow(t *testing.T, program string) {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), 3*time.Minute)
	defer done()
	run := exec.CommandContext(ctx, program, "-test.run", "TestPlans", "-plan", "testdata/plans/"+m.plan+".json")
	out, err := run.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("%s passes, and %s shows nothing (%v)", m.name, m.plan, err)
	}
	for _, kind := range m.kinds {
		if regexp.MustCompile(`(?m)(^|: ) +` + kind + ` +at `).Match(out) {
			return
		}
	}
	t.Errorf("%s shows something else than %v:\n%s", m.plan, m.kinds, out)
}

var counted = regexp.MustCompile(`(\d+) seeds from \d+ on`)

// seeds returns how many new seeds it takes to find the fault.
func (m *mutant) seeds(t *testing.T, program string, budget time.Duration) string {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), 2*budget)
	defer done()
	run := exec.CommandContext(ctx, program, "-test.run", "TestSeeds", "-test.v", "-first", "-seed", "1000", "-for", budget.String())
	out, err := run.CombinedOutput()
	n := "?"
	if found := counted.FindSubmatch(out); found != nil {
		n = string(found[1])
	}
	if err == nil {
		return "not in " + n
	}
	return n
}

// soakTable is where the rows of the soak go.
func soakTable(t *testing.T) *os.File {
	t.Helper()
	name := os.Getenv("ONBEAT_MUTANTS_TABLE")
	if name == "" {
		name = os.DevNull
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
