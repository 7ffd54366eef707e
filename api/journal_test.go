package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/split"
)

// serving serves until stop, on a port of its own.
func serving(t *testing.T, s *Server) (addr string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l, nil) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

// journal is an activity in memory, which can go away.
type journal struct {
	admin.Activity
	mu     sync.Mutex
	list   []admin.Event
	more   chan struct{}
	away   bool
	reads  int // readers that follow now
	common int // the most at once
}

var errAway = errors.New("away")

func newJournal() *journal { return &journal{more: make(chan struct{})} }

func (l *journal) add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range n {
		l.list = append(l.list, admin.Event{ID: strconv.Itoa(1000+len(l.list)/2) + "-" + strconv.Itoa(len(l.list)%2), Event: "e" + strconv.Itoa(len(l.list)%3)})
		l.list[len(l.list)-1].Cursor = l.list[len(l.list)-1].ID
	}
	close(l.more)
	l.more = make(chan struct{})
}

func (l *journal) setAway(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = away
	close(l.more)
	l.more = make(chan struct{})
}

func (l *journal) Now(context.Context) (time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		return time.Time{}, errAway
	}
	return time.Now(), nil
}

func (l *journal) Events(_ context.Context, q admin.EventQuery) (page admin.List[admin.Event], err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		return page, errAway
	}
	if q.After == "" {
		page.Items = l.list[max(len(l.list)-q.Limit, 0):]
		return page, nil
	}
	from, err := split.ParseCursor(q.After)
	for _, e := range l.list {
		if !from.Has(split.PlaceOf(e.ID)) && len(page.Items) < q.Limit {
			page.Items = append(page.Items, e)
		}
	}
	if len(page.Items) == q.Limit {
		page.Next = page.Items[q.Limit-1].ID
	}
	return page, err
}

func (l *journal) Follow(ctx context.Context, after string, fn func(admin.Event) error) error {
	from, _ := split.ParseCursor(after)
	l.mu.Lock()
	l.reads++
	l.common = max(l.common, l.reads)
	l.mu.Unlock()
	defer func() { l.mu.Lock(); l.reads--; l.mu.Unlock() }()
	for {
		l.mu.Lock()
		list, more, away := l.list, l.more, l.away
		l.mu.Unlock()
		if away {
			return errAway
		}
		for _, e := range list {
			if at := split.PlaceOf(e.ID); !from.Has(at) {
				from = from.Past(at)
				if err := fn(e); err != nil {
					return err
				}
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func serverOf(l admin.Activity) *Server {
	s := &Server{stream: newStream(l)}
	s.handler = guard(&Config{}, s.streamed(http.NotFoundHandler()))
	return s
}

// client is one of a stream.
type client struct {
	resp *http.Response
	in   *bufio.Reader
	stop context.CancelFunc
}

// listen opens a stream after an event, or with a query ("?...").
func listen(t *testing.T, addr, after string) *client {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	query := ""
	if strings.HasPrefix(after, "?") {
		query, after = after, ""
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/v1/events"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{resp, bufio.NewReader(resp.Body), stop}
	t.Cleanup(c.close)
	return c
}

func (c *client) close() { c.stop(); _ = c.resp.Body.Close() }

// until reads lines until one begins so.
func (c *client) until(t *testing.T, begin string) string {
	t.Helper()
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			t.Fatalf("before %q: %v", begin, err)
		}
		if rest, ok := strings.CutPrefix(line, begin); ok {
			return strings.TrimSpace(rest)
		}
	}
}

func (c *client) ids(t *testing.T, n int) (list []string) {
	t.Helper()
	id := ""
	for len(list) < n {
		line := c.until(t, "")
		if at, ok := strings.CutPrefix(line, "id: "); ok {
			id = at
			continue
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e admin.Event
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.ID != id {
			t.Fatalf("%s: %+v, %v", id, e, err)
		}
		list = append(list, id)
	}
	return list
}
