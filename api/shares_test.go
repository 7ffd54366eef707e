package api

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/internal/testredis"
)

// reads is an activity of which each reading goes on until its reader leaves.
type reads struct {
	admin.Activity
	begun chan string
}

func (r *reads) Events(ctx context.Context, q admin.EventQuery) (admin.List[admin.Event], error) {
	r.begun <- q.After
	<-ctx.Done()
	return admin.List[admin.Event]{}, ctx.Err()
}

// However many streams of one sender read what they missed, there is a turn for the next sender.
func TestStream_aSenderLeavesTurnsToOthers(t *testing.T) {
	t.Parallel()
	r := &reads{begun: make(chan string, mostCatchingUp)}
	s := newStream(r)
	ended := make(chan error, 2*mostCatchingUp)
	catchUp := func(ctx context.Context, who string, at uint64) {
		l := &listener{who: who, gone: make(chan struct{})}
		go func() { ended <- s.catchUp(ctx, l, &tap{sent: split.Cursor{}.Past(split.Place{MS: at})}) }()
	}
	greedy, leave := context.WithCancel(t.Context())
	for range mostCatchingUp {
		catchUp(greedy, "greedy", 1)
	}
	for range mostCatchingUp / 2 {
		if after := <-r.begun; after != "1-0" {
			t.Fatal(after)
		}
	}
	other, done := context.WithCancel(t.Context())
	catchUp(other, "other", 2)
	if after := <-r.begun; after != "2-0" {
		t.Errorf("a turn of the sender that has half of them: %s", after)
	}
	leave()
	done()
	for range mostCatchingUp + 1 {
		if err := <-ended; err == nil {
			t.Error("no error")
		}
	}
	testredis.Eventually(t, 30*time.Second, func() bool { return s.catch.free == mostCatchingUp && len(s.catch.taken) == 0 }, "the turns are not given back")
}

func TestPlaces_whoWaitsIsWoken(t *testing.T) {
	t.Parallel()
	p := newPlaces(100, 1)
	if err := p.enter(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	over, end := context.WithCancel(t.Context())
	end()
	if p.enter(over, "a") == nil {
		t.Error("two of one")
	}
	entered := make(chan error)
	go func() { entered <- p.enter(t.Context(), "a") }()
	p.leave("a")
	if err := <-entered; err != nil {
		t.Error(err)
	}
	for i := range 99 {
		if err := p.enter(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if p.enter(over, "z") == nil {
		t.Error("more than there are")
	}
}
