package notify

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
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
