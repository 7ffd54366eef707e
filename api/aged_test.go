package api

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat/admin"
)

// Callers that take an older answer share one question, until the answer is too old or this server has changed something. The others ask.
func TestAged_answersAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s readings
		var asked atomic.Int64
		ask := func(age time.Duration) int64 {
			v, err := askOnce(context.WithValue(t.Context(), ageKey{}, age), &s, "x", func(context.Context) (int64, error) {
				time.Sleep(time.Second)
				return asked.Add(1), nil
			})
			if err != nil {
				t.Error(err)
			}
			return v
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { ask(2 * time.Second) })
		}
		all.Wait()
		if asked.Load() != 1 || ask(2*time.Second) != 1 || asked.Load() != 1 {
			t.Errorf("asked %d times", asked.Load())
		}
		if ask(0) != 2 {
			t.Error("who takes no older answer got one")
		}
		s.wrote.Add(1)
		if ask(9*time.Second) != 3 {
			t.Error("after a change an answer of before was given")
		}
		time.Sleep(9 * time.Second)
		if ask(9*time.Second) != 4 {
			t.Error("an answer was given that is too old")
		}
		_, err := askOnce(context.WithValue(t.Context(), ageKey{}, time.Second), &s, "y", func(context.Context) (int64, error) { return 0, errSlow })
		again, none := askOnce(context.WithValue(t.Context(), ageKey{}, time.Second), &s, "y", func(context.Context) (int64, error) { return 7, nil })
		if !errors.Is(err, errSlow) || again != 7 || none != nil {
			t.Errorf("%v, then %d, %v", err, again, none)
		}
		time.Sleep(2 * mostAge)
		for what, slots := range map[string]int{"small": 100, "large": largestReading + 1} {
			_, _ = askOnce(context.WithValue(t.Context(), ageKey{}, time.Second), &s, what, func(context.Context) (admin.Beat, error) {
				return admin.Beat{Schedules: []admin.BeatLine{{Slots: make([]admin.BeatSlot, slots)}}}, nil
			})
		}
		if kept := slices.Collect(maps.Keys(s.kept)); !slices.Equal(kept, []string{"small"}) {
			t.Errorf("the answers that are kept: %q", kept)
		}
	})
}

// faulty is an activity with a bug.
type faulty struct{ admin.Activity }

func (faulty) Status(context.Context) (admin.Status, error) { panic("bug") }

func TestAged_aBugIsAnAnswer(t *testing.T) {
	t.Parallel()
	s, err := New(&admin.Admin{Activity: faulty{}}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, local(http.MethodGet, "/v1/status?age=2s"))
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "bug") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if _, err := s.admin.Activity.Status(context.WithValue(t.Context(), ageKey{}, time.Second)); err == nil { // as the streams ask
		t.Error("no error")
	}
}

// A change that was made through the server is in the next answer, however old that may be.
func TestAged_showsWhatTheServerChanged(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	counts := func() admin.Counts {
		var n admin.Counts
		if _, _, text := s.call("GET", "/v1/counts?age=10s", ""); json.Unmarshal([]byte(text), &n) != nil {
			t.Fatal(text)
		}
		return n
	}
	before := counts()
	if code, _, text := s.call("POST", "/v1/tasks", `{"type":"echo","in":"1h"}`); code != http.StatusCreated && code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	if after := counts(); after.Later != before.Later+1 {
		t.Errorf("%d later, then %d", before.Later, after.Later)
	}
	wrote := s.shared.wrote.Load()
	s.call("HEAD", "/v1/counts", "")
	s.call("OPTIONS", "/v1/counts", "")
	s.call("POST", "/v1/nope", "")
	s.call("POST", "/v1/tasks", `{"type":"echo"}`, "Origin", "http://elsewhere.example") // it is not let in
	s.call("POST", "/v1/tasks?nope=1", `{"type":"echo"}`)
	if n := s.shared.wrote.Load() - wrote; n != 0 {
		t.Errorf("%d requests that change nothing count as changes", n)
	}
	for _, bad := range []string{"x", "11s", "-1s"} {
		if code, _, text := s.call("GET", "/v1/status?age="+bad, ""); code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, code, text)
		}
	}
}
