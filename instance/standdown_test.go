package instance

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestStandDown_handsOverInTheSameStep(t *testing.T) {
	t.Parallel()
	r := newRig(t, testredis.Real(t))
	b := r.up("b", "v1")
	a := r.up("a", "v2")
	r.open(a)
	term := r.term(a)
	if stood, v, err := r.reg.StandDown(t.Context(), term, "poisoned", false, true); err != nil || stood || v.Leader != "a" {
		t.Fatalf("only asked to say so: %v, %+v, %v", stood, v, err)
	}
	stood, v, err := r.reg.StandDown(t.Context(), term, "poisoned", true, true)
	must(t, err)
	if !stood || v.Leader != "b" || !v.Open || v.Epoch <= term.Epoch {
		t.Fatalf("%v, %+v", stood, v)
	}
	_, _, err = r.reg.StandDown(t.Context(), term, "poisoned", true, true)
	r.wantErr(err, queue.ErrNotLeader)
	if stood, _, err = r.reg.StandDown(t.Context(), r.term(b), "too", true, true); err != nil || stood {
		t.Fatalf("nobody else could lead, and b stood down: %v, %v", stood, err)
	}
	r.wantLeader("b")
	r.ready(a)
	r.wantLeader("a")
	for _, want := range []string{"leads but cannot schedule a", "stood down a", "leads but cannot schedule b"} {
		if !slices.Contains(r.events(), want) {
			t.Errorf("no event %q in %q", want, r.events())
		}
	}
}

// An instance that stood down leads again after a pause, which is longer each time, or at once if no other is there any more.
func TestStandDown_restsAndComesBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		b := r.node(Config{ID: "b"})
		b.session()
		time.Sleep(time.Second) // in a bubble that is until it is ready, and could lead
		s := r.node(Config{ID: "a"}).session()
		lead := leading(s)
		down := func(want time.Duration) {
			t.Helper()
			term := wait(t, lead.began, "term")
			if !s.StandDown(t.Context(), term, "no luck", true, true) {
				t.Fatal("it did not stand down")
			}
			began := time.Now()
			wantCause(t, wait(t, lead.ended, "end of the term"), ErrDeposed)
			r.wantLeader("b")
			for len(lead.began) == 0 && time.Since(began) < time.Hour {
				time.Sleep(100 * time.Millisecond)
			}
			if took := time.Since(began); took < want || took > want+5*time.Second {
				t.Fatalf("it leads again after %v, want %v", took, want)
			}
		}
		down(time.Minute)
		down(2 * time.Minute)
		down(4 * time.Minute)
		wait(t, lead.began, "term")
		term, _, _ := s.Term()
		if !s.StandDown(t.Context(), term, "no luck", true, true) {
			t.Fatal("it did not stand down")
		}
		must(t, b.leave())
		began := time.Now()
		wait(t, lead.began, "term when nobody else is there")
		if took := time.Since(began); took > 2*time.Second {
			t.Fatalf("nobody led for %v", took)
		}
	})
}

// A leader whose last term has not returned would lead and do nothing.
func TestStandDown_waitsForTheLastTermToReturn(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		r.node(Config{ID: "b"}).session()
		time.Sleep(time.Second) // in a bubble that is until it is ready, and could lead
		s := r.node(Config{ID: "a"}).session()
		stop := make(chan struct{})
		terms := make(chan queue.Term, 100)
		go s.Lead(func(_ context.Context, term queue.Term) {
			terms <- term
			<-stop // deaf to its context
		})
		if !s.StandDown(t.Context(), wait(t, terms, "term"), "blocked", true, true) {
			t.Fatal("it did not stand down")
		}
		time.Sleep(10 * time.Minute)
		r.wantLeader("b")
		close(stop)
		time.Sleep(10 * time.Second)
		r.wantLeader("a")
	})
}

// An instance on probation waits only while another can lead. A leader that cannot schedule cannot, so it hands over to it.
// The instance that stood down does not count as on probation itself: it alone knows when its scheduler has returned.
func TestStandDown_handsOverToOneOnProbation(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		s := r.node(Config{ID: "good", Release: "v1"}).session()
		terms := make(chan queue.Term, 100)
		stop := make(chan struct{})
		go s.Lead(func(_ context.Context, term queue.Term) {
			terms <- term
			<-stop // deaf to its context
		})
		for i := range 3 {
			wait(t, terms, "term")
			r.crash(mini, Config{ID: fmt.Sprint("bad", i), Release: "v2"}, 31*time.Second)
			stop <- struct{}{}
			time.Sleep(6 * time.Second)
		}
		r.wantLeader("good")
		term := wait(t, terms, "term")
		other, line := r.other(mini)
		n := other.node(Config{ID: "last", Release: "v2"})
		lead := leading(n.session())
		time.Sleep(3 * time.Second)
		r.wantLeader("good")
		if !s.StandDown(t.Context(), term, "blocked", true, true) {
			t.Fatal("it did not hand over")
		}
		r.wantLeader("last")
		wait(t, lead.began, "term of the one on probation")
		line.hold(t)
		n.stop()
		time.Sleep(10 * time.Minute) // its rest is over, and its scheduler has not returned
		if id, _, _ := r.lead(); id == "good" {
			t.Error("it leads, and its scheduler has not returned")
		}
		close(stop)
		time.Sleep(10 * time.Second)
		r.wantLeader("good")
	})
}
