package api

import (
	"context"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
)

// slow is a journal that takes a while to say which event is its newest, as a Redis far away does.
type slow struct{ *journal }

func (l slow) Events(ctx context.Context, q admin.EventQuery) (admin.List[admin.Event], error) {
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
	}
	return l.journal.Events(ctx, q)
}

// A stream that has said that it follows sends what happens from then on, also if it is the first of its server.
func TestStream_saysThatItFollowsWhenItDoes(t *testing.T) {
	t.Parallel()
	l := slow{newJournal()}
	l.add(1)
	addr, _ := serving(t, serverOf(l))
	c := listen(t, addr, "")
	c.until(t, ": following")
	l.add(1)
	l.add(1)
	first := l.list[1].ID
	if got := c.ids(t, 1); got[0] != first {
		t.Errorf("the first event that is sent is %s, want %s", got, first)
	}
}
