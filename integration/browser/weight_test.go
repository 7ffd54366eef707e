package browser

import (
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
)

// The limits of a page on the wire: to load it with all that it needs, and each second after. Its events count too.
const (
	mostLoaded   = 100_000 // bytes
	mostASecond  = 3_000   // bytes
	mostRequests = 2       // a second
)

// wire counts what comes over the wire.
type wire struct {
	mu              sync.Mutex
	hosts           map[string]bool
	bytes, requests int
}

func (w *wire) hear(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" {
			w.hosts[u.Host] = true
			w.requests++
		}
	case *network.EventLoadingFinished:
		w.bytes += int(e.EncodedDataLength)
	case *network.EventEventSourceMessageReceived: // of a stream that is not finished
		w.bytes += len(e.Data) + len(e.EventName) + len(e.EventID) + len("event: \nid: \ndata: \n\n")
	}
}

// read returns what came since the last call.
func (w *wire) read() (bytes, requests int, hosts map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	bytes, requests, hosts = w.bytes, w.requests, w.hosts
	w.bytes, w.requests, w.hosts = 0, 0, map[string]bool{}
	return bytes, requests, hosts
}

// Each page is light, also that of a schedule whose every slot fails, among 2,000 dead tasks; and it asks no other host.
func TestWeight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head, w.Beat("well", time.Second, ""),
		"  - {name: fails, every: 1s, task: http, payload: {url: 'http://127.0.0.1:9/', headers: {X-Customer: '4711'}}, max_attempts: 1}\n")
	w.Must("schedules", "backfill", "fails", "--from", "2000s")
	testredis.Eventually(w, 3*patience, func() bool { return w.deadTasks() >= 2000 }, "the slots do not fail")
	pages := []string{
		"/", "/beat", "/schedules", "/schedules/fails", "/schedules/well", "/schedules/fails?edit=true", "/new-schedule", "/tasks", "/tasks?state=dead", "/tasks?state=waiting",
		"/trends", "/dead", "/enqueue", "/instances", "/events", "/audit",
	}
	heard, loaded := make([]*wire, len(pages)), make([]int, len(pages))
	for i, path := range pages {
		b := w.browse()
		b.allow(`status of 429 `) // fifteen pages of one person are many on a busy machine: a page asks again
		heard[i] = &wire{hosts: map[string]bool{}}
		if err := chromedp.Listen(b.ctx, heard[i].hear); err != nil {
			w.Fatal(err)
		}
		sends(b, network.Enable, network.EnableParams{})
		sends(b, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
		b.open(path)
		b.waits(`!document.querySelector('#live') || document.querySelector('#live').dataset.state === 'live'`)
		time.Sleep(500 * time.Millisecond) // so that late data counts too
		bytes, requests, hosts := heard[i].read()
		if loaded[i] = bytes; requests < 3 {
			w.Errorf("%s: only %d requests are seen", path, requests)
		}
		if len(hosts) != 1 || !hosts[strings.TrimPrefix(w.front.URL, "http://")] {
			w.Errorf("%s asks other hosts: %v", path, hosts)
		}
	}
	for i := range pages {
		heard[i].read()
	}
	began := time.Now()
	time.Sleep(15 * time.Second) // each asks some times
	for i, path := range pages {
		bytes, requests, _ := heard[i].read()
		seconds := time.Since(began).Seconds()
		rate, asks := float64(bytes)/seconds, float64(requests)/seconds
		w.Logf("%-26s %6.1f KB, then %5.2f KB/s in %.2f requests/s", path, float64(loaded[i])/1000, rate/1000, asks)
		if loaded[i] > mostLoaded || rate > mostASecond || asks > mostRequests {
			w.Errorf("%s loads %d bytes, and then %.0f a second in %.2f requests, want at most %d, %d and %d", path, loaded[i], rate, asks, mostLoaded, mostASecond, mostRequests)
		}
	}
}

// The most commands a second that open pages ask of Redis: the first page, and each further tab of the same page. Pages that share
// nothing ask 18 to 35 each; on a busy machine two answers in the place of one are a few more.
const mostFirst, mostFurther = 50, 10

// The pages that are open share their requests to Redis.
func TestWeight_ofManyPages(t *testing.T) {
	t.Parallel()
	w, srv := privateWorld(t)
	rdb := srv.Client()
	w.serve("v1", head, w.Beat("well", time.Hour, ""), w.Beat("other", time.Hour, "")) // the commands of the dispatcher must not hide those of the pages
	commands := func() int64 {
		w.Helper()
		before := processed(w, rdb)
		time.Sleep(9 * time.Second) // each asks some times
		return (processed(w, rdb) - before) / 9
	}
	alone := commands()
	for _, path := range []string{"/", "/tasks"} {
		var open []*tab
		add := func(n int) {
			for range n {
				b := w.browse()
				b.allow(`status of 429 `)
				b.open(path)
				open = append(open, b)
			}
		}
		add(1)
		first := commands() - alone
		add(3)
		further := (commands() - alone - first) / 3
		w.Logf("%-12s %3d commands a second, and %2d for each further page; %d without a page", path, first, further, alone)
		if first > mostFirst || further > mostFurther {
			w.Errorf("%s asks Redis %d commands a second, and each further one %d; want at most %d and %d", path, first, further, mostFirst, mostFurther)
		}
		for _, b := range open {
			b.do(chromedp.Navigate("about:blank"))
		}
	}
}

// processed is how many commands Redis has processed.
func processed(w *world, rdb *redis.Client) int64 {
	w.Helper()
	info := rdb.Info(w.Context(), "stats").Val()
	_, rest, _ := strings.Cut(info, "total_commands_processed:")
	n, err := strconv.ParseInt(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]), 10, 64)
	if err != nil {
		w.Fatal(err)
	}
	return n
}
