package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/integration/internal/containers"
	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestMain(m *testing.M) {
	for variable, play := range map[string]func() error{effectsDriver: makeEffects, leakRounds: makeRounds} {
		if os.Getenv(variable) == "" {
			continue
		}
		if err := play(); err != nil { // not the tests, but a process that one of them starts
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	containers.Main(m)
}

// beginBuild begins a build that takes minutes where nothing is cached. Call it before t.Parallel: the tests that run one by one
// come first, and leave it time. It does nothing in a soak, which measures milliseconds. Without a real Redis it skips the test.
func beginBuild(t *testing.T, build func() (string, error)) {
	t.Helper()
	testredis.Real(t)
	if !testredis.Soak() {
		go func() { _, _ = build() }() // the test that needs the program learns of an error
	}
}

// shortLease is the lease of instances that are frozen and killed. On a busy machine a second may pass in which nobody gets to
// renew a lease: then there is no instance, and the slots of that time are missed as their policy says.
func shortLease() string {
	if testredis.Soak() {
		return "1s"
	}
	return "3s"
}

// beside lets a test run beside others, but not in a soak: there it measures milliseconds.
func beside(t *testing.T) {
	if !testredis.Soak() {
		t.Parallel()
	}
}

// world is one namespace on a Redis, and the processes that a test starts in it.
type world struct{ *rig.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{rig.New(t)}
}

func worldOn(t *testing.T, url string) *world {
	t.Helper()
	return &world{rig.On(t, url)}
}

// privateWorld is a world on a Redis of its own, which the test may disturb.
func privateWorld(t *testing.T, args ...string) (*world, *testredis.Server) {
	t.Helper()
	w, srv := rig.Private(t, args...)
	return &world{w}, srv
}

// wantBeats judges schedules with an interval of beatEvery and reports the scenario. No slot may be missed, duplicated or off
// the grid, by the recorder and by the audit alike. ended is when the last instance was asked to stop; slots of the last
// second before it may have no instance left to run them.
func (w *world) wantBeats(scenario string, ended time.Time, names []string, besides ...string) {
	w.Helper()
	w.Row(scenario, w.Steady(beatEvery, ended.Add(-time.Second), names...), besides...)
}

// event is one event, as the program prints it.
type event struct {
	At     time.Time         `json:"at"`
	Event  string            `json:"event"`
	Fields map[string]string `json:"fields"`
}

// events returns all events of one kind so far.
func (w *world) events(kind string) []event {
	w.Helper()
	var list struct{ Items []event }
	if err := json.Unmarshal([]byte(w.Must("events", "--json", "--limit", "10000")), &list); err != nil {
		w.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(e event) bool { return e.Event != kind })
}

func contains(s, part string) bool { return strings.Contains(s, part) }
