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

// ill is a journal of a namespace in which no instance leads.
type ill struct{ *journal }

func (ill) Status(context.Context) (admin.Status, error) {
	return admin.Status{
		Trouble: []admin.Trouble{{Kind: admin.NoLeader, Text: "no instance leads"}},
		Counts:  admin.StatusCounts{Wrong: 2, Bad: 1, Dead: 7},
	}, nil
}

// A stream that asks for it has the status, and hears that Redis is away and back.
func TestStream_tellsTheStatus(t *testing.T) {
	t.Parallel()
	l := newJournal()
	addr, _ := serving(t, serverOf(ill{l}))
	c := listen(t, addr, "?status=true")
	next := func(want func(pulse) bool) {
		t.Helper()
		for {
			c.until(t, "event: status")
			var p pulse
			if err := json.Unmarshal([]byte(c.until(t, "data: ")), &p); err != nil {
				t.Fatal(err)
			}
			if want(p) {
				return
			}
		}
	}
	known := func(p pulse) bool {
		return p.Wrong == 2 && p.Bad == 1 && p.Dead == 7 && p.Stopped != nil && p.Stopped.Kind == admin.NoLeader
	}
	next(func(p pulse) bool { return known(p) && !p.Away && p.Since.IsZero() })
	l.setAway(true)
	next(func(p pulse) bool { return known(p) && p.Away && !p.Since.IsZero() })
	l.setAway(false)
	next(func(p pulse) bool { return known(p) && !p.Away && p.Since.IsZero() })
}

func TestStream_resumesWithoutAGapOrADouble(t *testing.T) {
	t.Parallel()
	l := newJournal()
	l.add(100)
	addr, _ := serving(t, serverOf(l))
	live := listen(t, addr, "")
	live.until(t, ": following")
	waitKnown(t, l)
	adding := make(chan struct{})
	go func() {
		defer close(adding)
		for range 100 {
			l.add(1)
		}
	}()
	var last string
	var all []string
	for len(all) < 200 { // it leaves and comes back, again and again, while events happen
		c := listen(t, addr, cmpOr(last, "0"))
		all = append(all, c.ids(t, 20)...)
		last = all[len(all)-1]
		c.close()
	}
	<-adding
	for i, id := range all {
		if want := strconv.Itoa(1000+i/2) + "-" + strconv.Itoa(i%2); id != want {
			t.Fatalf("event %d is %s, want %s", i, id, want)
		}
	}
	if got := live.ids(t, 100); got[0] != "1050-0" || got[99] != "1099-1" {
		t.Errorf("the live one got %s to %s", got[0], got[99])
	}
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// waitKnown waits until a reader follows.
func waitKnown(t *testing.T, l *journal) {
	t.Helper()
	for range 1000 {
		l.mu.Lock()
		n := l.reads
		l.mu.Unlock()
		if n > 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("no reader")
}

func TestStream_refusesPolitelyWhatIsTooMany(t *testing.T) {
	t.Parallel()
	l := newJournal()
	s := serverOf(l)
	addr, stop := serving(t, s)
	codes := map[int]int{}
	var open []*client
	for range mostListeners/2 + 44 {
		c := listen(t, addr, "")
		codes[c.resp.StatusCode]++
		if c.resp.StatusCode == 200 {
			open = append(open, c)
		} else if c.resp.Header.Get("Retry-After") == "" || c.resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%v", c.resp.Header)
		}
	}
	if codes[200] != mostListeners/2 || codes[503] != 44 {
		t.Fatalf("%v", codes)
	}
	waitKnown(t, l)
	for _, c := range open {
		c.until(t, ": following")
	}
	time.Sleep(50 * time.Millisecond)
	l.add(1)
	for _, c := range open {
		c.ids(t, 1)
	}
	if l.common != 1 {
		t.Errorf("%d readers of Redis", l.common)
	}
	open[0].close()
	for range 100 {
		c := listen(t, addr, "")
		if c.resp.StatusCode == 200 {
			break
		}
		c.close()
		time.Sleep(20 * time.Millisecond)
	}
	stop() // which ends the others
	open[1].until(t, ": closing")
}

func TestStream_goesOnWhenRedisIsBack(t *testing.T) {
	t.Parallel()
	l := newJournal()
	addr, _ := serving(t, serverOf(l))
	c := listen(t, addr, "")
	waitKnown(t, l)
	l.add(2)
	c.ids(t, 2)
	l.setAway(true)
	c.until(t, ": "+wordAway)
	l.mu.Lock()
	l.away = false
	l.mu.Unlock()
	l.add(3) // some of it while the hub did not listen
	c.until(t, ": "+wordBack)
	if got := c.ids(t, 3); got[0] != "1001-0" {
		t.Errorf("%v", got)
	}
}

// A listener that does not read is dropped, and keeps nothing from the others.
func TestHub_dropsASlowListener(t *testing.T) {
	t.Parallel()
	l := newJournal()
	h := newHub(l)
	defer h.close()
	slow, _ := h.join("", false)
	<-slow.known
	l.add(behindAtMost + 1)
	select {
	case <-slow.gone:
	case <-time.After(10 * time.Second):
		t.Fatal("it is not dropped")
	}
	h.leave(slow)
}

// A hub without listeners asks Redis nothing. Listeners that come and go leave no reader behind.
// A client that takes what it missed too slowly makes room for others, and loses nothing by it.
func TestStream_catchesUpForABoundedTime(t *testing.T) {
	t.Parallel()
	l := newJournal()
	l.add(4)
	s := serverOf(l)
	s.stream.catchTime = 0
	addr, _ := serving(t, s)
	live := listen(t, addr, "")
	live.until(t, ": following")
	waitKnown(t, l)
	last := "0"
	for _, want := range []string{"1000-0", "1000-1", "1001-0"} {
		c := listen(t, addr, last)
		if last = c.ids(t, 1)[0]; last != want {
			t.Fatalf("%s, not %s", last, want)
		}
		for err := error(nil); err == nil; {
			var line string
			if line, err = c.in.ReadString('\n'); strings.HasPrefix(line, "id:") {
				t.Fatalf("it goes on: %s", line)
			}
		}
		c.close()
	}
	s.stream.catch.mu.Lock()
	defer s.stream.catch.mu.Unlock()
	if len(s.stream.catch.taken) != 0 || s.stream.catch.free != mostCatchingUp {
		t.Error("the turn is not given back")
	}
}

func TestHub_readsWhileThereAreListeners(t *testing.T) {
	t.Parallel()
	l := newJournal()
	h := newHub(l)
	for range 20 {
		one, ok := h.join("", false)
		if !ok {
			t.Fatal("refused")
		}
		<-one.known
		h.leave(one)
	}
	h.close()
	if l.reads != 0 || l.common > 1 {
		t.Errorf("%d readers are left, %d at once", l.reads, l.common)
	}
	if _, ok := h.join("", false); ok {
		t.Error("a closed hub takes listeners")
	}
}

func TestStream_endsForATokenThatWasTakenAway(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	list := threeTokens()
	s := &Server{stream: newStream(newJournal())}
	s.stream.heartbeat = 20 * time.Millisecond
	s.handler = guard(&Config{Tokens: func() []Token { mu.Lock(); defer mu.Unlock(); return list }}, s.streamed(http.NotFoundHandler()))
	addr, _ := serving(t, s)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/v1/events", http.NoBody)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", "Bearer "+viewer)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	in := bufio.NewReader(resp.Body)
	for line := ""; line != ": alive\n"; {
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	list = list[1:]
	mu.Unlock()
	for err == nil {
		_, err = in.ReadString('\n')
	}
}
