package notify

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

func TestHeartbeat_goesToTheURLOfItsSignal(t *testing.T) {
	t.Setenv("ONBEAT_TEST_SWITCH", "sesame")
	got := ""
	s := receiver(t, false, func(w http.ResponseWriter, r *http.Request) {
		got = r.Method + " " + r.URL.Path
		if strings.HasSuffix(r.URL.Path, "/broken") {
			http.Error(w, "no switch at "+r.URL.Path, http.StatusNotFound)
		}
	})
	of := &producer.Heartbeat{URL: s.URL + "/${ONBEAT_TEST_SWITCH}", Start: s.URL + "/${HOME}", Fail: s.URL + "/sesame/broken"}
	seen := &told{}
	h := NewHeartbeatHandler(Heartbeat{URL: s.URL + "/all", HTTP: handlers.HTTPConfig{PassEnv: []string{"ONBEAT_TEST_SWITCH"}}},
		func(_ context.Context, name string) (*producer.Heartbeat, error) {
			switch name {
			case "gone":
				return nil, task.ErrNotFound
			case "none":
				return nil, nil //nolint:nilnil // it has none
			}
			return of, nil
		}, seen, zerolog.Nop())
	t.Cleanup(func() { _ = h.Close() })
	for _, c := range []struct {
		beat
		age             time.Duration
		want, told, err string
	}{
		{beat{}, 0, "GET /all", "dispatcher sent", ""},
		{beat{}, 2 * time.Minute, "", "dispatcher gave_up", ""},
		{beat{Schedule: "nightly", Signal: runSucceeded}, 59 * time.Minute, "GET /sesame", "schedule sent", ""},
		{beat{Schedule: "nightly", Signal: runSucceeded}, 61 * time.Minute, "", "schedule gave_up", ""},
		{beat{Schedule: "nightly", Signal: runBegan}, 0, "", "schedule failed", "http.pass_env"},
		{beat{Schedule: "nightly", Signal: runFailed}, 0, "GET /sesame/broken", "schedule failed", `schedule "nightly" at 127.0.0.1: `},
		{beat{Schedule: "gone", Signal: runSucceeded}, 0, "", "", ""},
		{beat{Schedule: "none", Signal: runSucceeded}, 0, "", "", ""},
	} {
		got, seen.results = "", nil
		now := time.Now()
		c.At = now.Add(-c.age).UnixMilli()
		one := c.task("")
		one.Claimed, one.Attempt = now, 1
		err := h.Handle(t.Context(), one)
		if got != c.want || strings.Join(seen.results, ",") != c.told || (err == nil) != (c.err == "") {
			t.Errorf("%+v: %q, %q, %v", c.beat, got, seen.results, err)
		}
		if err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "sesame")) {
			t.Errorf("%+v: %v", c.beat, err)
		}
	}
}

// A receiver that asks for an hour of silence, and answers with what the URL was made of, gets the next heartbeat soon and betrays nothing.
func TestHeartbeat_ofAReceiverThatIsBusy(t *testing.T) {
	t.Parallel()
	s := receiver(t, false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		http.Error(w, "no switch sesame99", http.StatusTooManyRequests)
	})
	h := NewHeartbeatHandler(Heartbeat{URL: s.URL + "/a-sesame99.txt", Env: map[string]string{"SWITCH": "sesame99"}, Every: 20 * time.Second}, nil, nil, zerolog.Nop())
	t.Cleanup(func() { _ = h.Close() })
	one := (&beat{At: time.Now().UnixMilli()}).task("")
	one.Claimed, one.Attempt = time.Now(), 1
	err := h.Handle(t.Context(), one)
	wait, asked := handlers.RetryDelay(err)
	if err == nil || !asked || wait > 20*time.Second || strings.Contains(err.Error(), "sesame99") {
		t.Errorf("%v, in %v", err, wait)
	}
}

// A host that does not answer holds up the heartbeat of one schedule for a moment, and not those of others.
func TestHeartbeat_leavesASilentHostAlone(t *testing.T) {
	t.Parallel()
	calls, leave := atomic.Int32{}, make(chan struct{})
	s := receiver(t, false, func(_ http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		select {
		case <-r.Context().Done():
		case <-leave:
		}
	})
	t.Cleanup(func() { close(leave) })
	h := NewHeartbeatHandler(Heartbeat{}, func(context.Context, string) (*producer.Heartbeat, error) {
		return &producer.Heartbeat{URL: s.URL}, nil
	}, nil, zerolog.Nop())
	t.Cleanup(func() { _ = h.Close() })
	for i, name := range []string{"a", "b", "c"} {
		one := (&beat{Schedule: name, Signal: runSucceeded, At: time.Now().UnixMilli()}).task("")
		one.Claimed, one.Attempt = time.Now(), 1
		began := time.Now()
		err := h.Handle(t.Context(), one)
		if err == nil || calls.Load() != 1 || i > 0 && !errors.Is(err, errSilent) || i == 0 && time.Since(began) < signalTimeout/2 {
			t.Errorf("%s: %v, %d calls", name, err, calls.Load())
		}
	}
}

// An instance without the URL leaves the heartbeat to another one.
func TestHeartbeat_ofTheDispatcherNeedsItsURL(t *testing.T) {
	t.Parallel()
	h := NewHeartbeatHandler(Heartbeat{}, nil, nil, zerolog.Nop())
	b := beat{At: time.Now().UnixMilli()}
	if err := h.Handle(t.Context(), b.task("")); !errors.Is(err, errNoBeat) || handlers.IsDead(err) {
		t.Error(err)
	}
	bad := task.Task{Payload: json.RawMessage(`5`)}
	if err := h.Handle(t.Context(), &bad); !handlers.IsDead(err) {
		t.Error(err)
	}
}

func TestHeartbeat_refusesWhatCouldNotBeUsed(t *testing.T) {
	t.Parallel()
	for _, h := range []Heartbeat{{URL: "ftp://x.example/sesame"}, {URL: "sesame"}, {Every: time.Second}, {Every: 25 * time.Hour}} {
		err := h.Validate()
		if err == nil || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%v: %v", h.Every, err)
		}
	}
	must(t, Heartbeat{URL: "https://hc-ping.com/x", Every: 10 * time.Second}.Validate())
}

// The heart beats, stops for a reason, and goes on. A heartbeat that is still to be sent is no reason.
func TestHeart_beatsWhileNothingStopsIt(t *testing.T) {
	t.Parallel()
	var beats []string
	var why error
	h := newHeart(t, nil)
	h.cfg.Well = func(context.Context) error { return why }
	look := func() bool {
		t.Helper()
		err := h.beat(t.Context())
		records, _ := h.q.Records(t.Context(), []string{HeartbeatType})
		if records[HeartbeatType] != nil {
			beats = append(beats, "beat")
			h.sent(t, HeartbeatType)
		}
		return err == nil
	}
	if !look() {
		t.Error("does not beat")
	}
	why = errors.New("workers_busy")
	if look() {
		t.Error("beats")
	}
	why = nil
	if !look() || !slices.Equal(beats, []string{"beat", "beat"}) {
		t.Errorf("%q", beats)
	}
	must(t, h.beat(t.Context()))
	must(t, h.beat(t.Context())) // the first is still to be sent
}
