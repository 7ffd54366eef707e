package integration

import (
	"context"
	"errors"
	"net"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/client"
	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
)

// watcher follows the events of a rollout over the API. Its calls go to the address of one instance at a time, as those through
// a load balancer do.
type watcher struct {
	*admin.Admin
	address atomic.Value // string
	dials   atomic.Int64
	stop    func()

	mu   sync.Mutex
	seen []admin.Event
}

// watch follows all events of the namespace from the first on, until the test ends.
func watch(t *testing.T, address string) *watcher {
	t.Helper()
	w := &watcher{}
	w.address.Store(address)
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		w.dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, w.address.Load().(string))
	}}
	var err error
	if w.Admin, err = client.New("http://127.0.0.1", client.Options{HTTP: &http.Client{Transport: transport}}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- w.Activity.Follow(ctx, "0", func(e admin.Event) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen = append(w.seen, e)
			return nil
		})
	}()
	w.stop = sync.OnceFunc(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the watch ended: %v", err)
		}
		transport.CloseIdleConnections()
	})
	t.Cleanup(w.stop)
	return w
}

func (w *watcher) events() []admin.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// has reports whether it has seen an event of a release.
func (w *watcher) has(kind, release string) bool {
	return slices.ContainsFunc(w.events(), func(e admin.Event) bool { return e.Event == kind && e.Fields["release"] == release })
}

// led returns how often it has seen an instance lead.
func (w *watcher) led() (n int) {
	for _, e := range w.events() {
		if e.Event == "leader" {
			n++
		}
	}
	return n
}

var servedAt = regexp.MustCompile(`"url":"http://([^"]+)"`)

// addressOf returns where a process serves the API.
func addressOf(t *testing.T, p *rig.Process) string {
	t.Helper()
	p.Said("serving the API")
	return servedAt.FindStringSubmatch(p.Log())[1]
}

// A rollout is watched over the API of the old release, which stops in the middle of it. The watcher goes on at the new release: it
// misses no event, sees none twice, and sees each release join, get ready and lead in this order. Meanwhile the beat keeps.
func TestRollout_isSeenWholeByWhoWatchesIt(t *testing.T) {
	f := newFleet(t, "api: {listen: '127.0.0.1:0'}\n")
	old := f.release("v1").up(1)
	w := watch(t, addressOf(t, old.replicas[0]))
	f.goesOn(10)
	next := f.release("v2").up(1)
	testredis.Eventually(t, 20*time.Second, func() bool { return w.has("leader", "v2") }, "the watcher does not see v2 lead")
	w.address.Store(addressOf(t, next.replicas[0]))
	dials := w.dials.Load()
	old.down()
	testredis.Eventually(t, 20*time.Second, func() bool { return w.has("left", "v1") }, "the watcher does not see v1 leave")
	next.up(1) // while the watcher has no stream
	testredis.Eventually(t, 20*time.Second, func() bool { return w.dials.Load() > dials && w.led() == 3 }, "the watcher does not come back")
	to := time.Now()
	f.goesOn(10)

	w.wantOrder(t)
	w.wantNoGap(t)
	w.wantBeat(f, to)
	w.stop()
	f.ends(next)
	f.wantReigns("v1", "v2")
	f.wantSteady("rollout, watched over the API of the release that stops", 5*fleetEvery)
}

// wantOrder fails unless each instance joined, got ready and led, and v1 left before the second of v2 joined.
func (w *watcher) wantOrder(t *testing.T) {
	t.Helper()
	var got []string
	for _, e := range w.events() {
		if slices.Contains([]string{"joined", "ready", "leader", "draining", "left"}, e.Event) {
			got = append(got, e.Event+" "+e.Fields["release"])
		}
	}
	want := []string{
		"joined v1", "ready v1", "leader v1", "joined v2", "ready v2", "leader v2", "draining v1", "left v1",
		"joined v2", "ready v2", "leader v2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("seen %q, want %q", got, want)
	}
}

// wantNoGap fails unless the watcher has seen just the events that there are.
func (w *watcher) wantNoGap(t *testing.T) {
	t.Helper()
	list, err := w.Activity.Events(t.Context(), admin.EventQuery{Limit: 1000})
	if err != nil || list.Next != "" {
		t.Fatalf("%v, next %q", err, list.Next)
	}
	idsOf := func(list []admin.Event) (ids []string) {
		for _, e := range list {
			ids = append(ids, e.ID)
		}
		return ids
	}
	if seen, all := idsOf(w.events()), idsOf(list.Items); !slices.Equal(seen, all) {
		t.Errorf("seen %q, want %q", seen, all)
	}
}

// wantBeat fails unless, by what the API draws, each slot until a moment ran in its first attempt, and one release led after the
// other.
func (w *watcher) wantBeat(f *fleet, to time.Time) {
	f.Helper()
	beat, err := w.Activity.Beat(f.Context(), admin.BeatQuery{To: to})
	if err != nil {
		f.Fatal(err)
	}
	if len(beat.Schedules) != len(f.beats) {
		f.Errorf("%d schedules are drawn, want %d", len(beat.Schedules), len(f.beats))
	}
	by := map[string]int{}
	for _, line := range beat.Schedules {
		for i, s := range line.Slots {
			if ran := s.Fate == audit.OnTime || s.Fate == audit.Late; !ran || s.Attempt != 1 {
				f.Errorf("%s at %s: %s %s, attempt %d", line.Schedule, s.Slot, s.Fate, s.Why, s.Attempt)
			}
			if i > 0 && s.Slot.Sub(line.Slots[i-1].Slot) != fleetEvery {
				f.Errorf("%s: after %s comes %s", line.Schedule, line.Slots[i-1].Slot, s.Slot)
			}
			by[s.Release]++
		}
	}
	var terms []string
	for _, term := range beat.Terms {
		terms = append(terms, term.Release)
	}
	if !slices.Equal(terms, []string{"v1", "v2", "v2"}) || by["v1"] == 0 || by["v2"] == 0 {
		f.Errorf("terms of %v; slots by %v", terms, by)
	}
}
