package api

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/split"
)

// halves is the activity of two partitions, of which the second may be away.
type halves struct {
	admin.Activity
	follow chan admin.Event // what Follow gives

	mu     sync.Mutex
	events []string
	away   bool
}

func (h *halves) set(away bool, events ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away, h.events = away, append(h.events, events...)
}

func (h *halves) Events(_ context.Context, q admin.EventQuery) (page admin.List[admin.Event], err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	after, err := split.ParseCursor(q.After)
	if err != nil {
		return page, err
	}
	all := after
	for _, id := range h.events {
		p := split.PlaceOf(id)
		if h.away && p.Partition == 2 || after.Has(p) {
			continue
		}
		all = all.Past(p)
		page.Items = append(page.Items, admin.Event{ID: id, Event: "told", Cursor: all.String()})
	}
	if h.away {
		page.CouldNotAsk = []admin.Unasked{{Source: "partition 2"}}
	}
	return page, nil
}

func (h *halves) Follow(ctx context.Context, _ string, fn func(admin.Event) error) error {
	for {
		select {
		case e := <-h.follow:
			if err := fn(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (*halves) Status(context.Context) (admin.Status, error) { return admin.Status{}, nil }

// A client that comes back while a partition is away misses none of its events: when they come, the stream ends, and the client comes back
// for those before them.
func TestStream_endsForWhoMissedAPartition(t *testing.T) {
	t.Parallel()
	h := &halves{follow: make(chan admin.Event)}
	h.set(false, "3-0@1", "3-0@2", "5-0@1", "5-0@2")
	addr, stop := serving(t, serverOf(h))
	defer stop()
	listen(t, addr, "").until(t, "id: ") // the hub is at the newest of both
	h.set(true)
	c := listen(t, addr, "3-0,3-0@1,3-0@2")
	c.until(t, "id: ")
	if data := c.until(t, "data: "); !strings.Contains(data, `"5-0@1"`) {
		t.Fatal(data)
	}
	h.follow <- admin.Event{ID: "6-0@1", Event: "told"}
	at := c.until(t, "id: ")
	c.until(t, "data: ")
	h.set(false, "6-0@1", "6-0@2")
	h.follow <- admin.Event{ID: "6-0@2", Event: "told"}
	if rest, err := io.ReadAll(c.in); err != nil || strings.Contains(string(rest), "data: ") {
		t.Fatalf("%q %v", rest, err)
	}
	c = listen(t, addr, at)
	for _, want := range []string{"5-0@2", "6-0@2"} {
		if data := c.until(t, "data: "); !strings.Contains(data, `"`+want+`"`) {
			t.Errorf("%s, want %s", data, want)
		}
	}
}
