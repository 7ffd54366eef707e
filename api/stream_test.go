package api

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
)

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

// A hub without listeners asks Redis nothing. Listeners that come and go leave no reader behind.
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
