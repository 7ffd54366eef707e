package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/admin/audit"
)

// judge is an activity whose audits take until they are let go.
type judge struct {
	admin.Activity
	begun chan audit.Options
	end   chan struct{}
}

func (j *judge) Audit(ctx context.Context, o audit.Options) (admin.Audit, error) {
	j.begun <- o
	select {
	case <-j.end:
	case <-ctx.Done():
	}
	return admin.Audit{Schedules: []audit.Report{{}}}, nil
}

func (j *judge) Beat(ctx context.Context, o admin.BeatQuery) (admin.Beat, error) {
	_, err := j.Audit(ctx, audit.Options{Tolerance: o.Step})
	return admin.Beat{Schedules: []admin.BeatLine{{}}}, err
}

// Each audit may take the memory of millions of slots, and there are 64 requests at once.
func TestAudit_oneAtATimeAndBounded(t *testing.T) {
	t.Parallel()
	j := &judge{begun: make(chan audit.Options, 2), end: make(chan struct{})}
	s, err := New(&admin.Admin{Activity: j}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan int, 1)
	go func() {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, local(http.MethodGet, "/v1/audit?tolerance=1s"))
		first <- w.Code
	}()
	if o := <-j.begun; o.MaxSlots != auditSlots {
		t.Errorf("%d slots", o.MaxSlots)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, local(http.MethodGet, "/v1/audit"))
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("two at once: %d %s", w.Code, w.Body)
	}
	close(j.end)
	if code := <-first; code != http.StatusOK {
		t.Errorf("the first: %d", code)
	}
	w = httptest.NewRecorder()
	s.ServeHTTP(w, local(http.MethodGet, "/v1/audit"))
	if w.Code != http.StatusOK {
		t.Errorf("the next: %d %s", w.Code, w.Body)
	}
}

// A sender with many audits has one place in the line, and the next turn is another sender's.
func TestAudit_ofOneSenderLeavesTheTurnToOthers(t *testing.T) {
	t.Parallel()
	j := &judge{begun: make(chan audit.Options, 2), end: make(chan struct{})}
	s, err := New(&admin.Admin{Activity: j}, Config{Tokens: threeTokens})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(token, tolerance string) (code chan int) {
		code = make(chan int, 1)
		go func() {
			r, w := local(http.MethodGet, "/v1/audit?tolerance="+tolerance), httptest.NewRecorder()
			r.Header.Set("Authorization", "Bearer "+token)
			s.ServeHTTP(w, r)
			code <- w.Code
		}()
		return code
	}
	first := ask(viewer, "1s")
	<-j.begun
	began := time.Now()
	var more []chan int
	for range 5 {
		more = append(more, ask(viewer, "2s"))
	}
	for _, code := range more {
		if got := <-code; got != http.StatusTooManyRequests {
			t.Errorf("one more of the same: %d", got)
		}
	}
	if waited := time.Since(began); waited > slotTime-time.Second {
		t.Errorf("the others of a sender were in the line for %v", waited)
	}
	other := ask(operator, "3s")
	j.end <- struct{}{}
	if o := <-j.begun; o.Tolerance != 3*time.Second {
		t.Errorf("the next turn is that of %v", o.Tolerance)
	}
	j.end <- struct{}{}
	if a, b := <-first, <-other; a != http.StatusOK || b != http.StatusOK {
		t.Errorf("%d and %d", a, b)
	}
}

// A beat that is summed up is an audit, also for those who share its answer, and after its client has left. Those who ask the same have
// one turn.
func TestAudit_ofASharedBeatIsOneAtATime(t *testing.T) {
	t.Parallel()
	j := &judge{begun: make(chan audit.Options, 2), end: make(chan struct{})}
	s, err := New(&admin.Admin{Activity: j}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context, step string) int {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, local(http.MethodGet, "/v1/beat?age=10s&step="+step).WithContext(ctx))
		return w.Code
	}
	ctx, leave := context.WithCancel(t.Context())
	first, same := make(chan int, 1), make(chan int, 1)
	go func() { first <- ask(ctx, "1h") }()
	<-j.begun
	leave()
	go func() { same <- ask(t.Context(), "1h") }()
	for _, step := range []string{"2h", "3h"} { // the second lasts until the same question, without a share in the first, would be refused
		if code := ask(t.Context(), step); code != http.StatusTooManyRequests {
			t.Errorf("another one beside it: %d", code)
		}
	}
	if len(first) > 0 {
		t.Error("a question goes on without a request that holds a place")
	}
	close(j.end)
	if code := <-same; code != http.StatusOK {
		t.Errorf("the same question: %d", code)
	}
	<-first
	if len(j.begun) > 0 {
		t.Error("one question had two turns")
	}
}
