package api

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
	"github.com/onbeat/onbeat/testredis"
)

// fuzz sends requests made from the OpenAPI document, sound ones and broken ones, and judges each reply.
type fuzz struct {
	t       *testing.T
	base    string
	doc     *document
	client  *http.Client
	memory  *memory
	roles   map[string]Role
	secrets map[string]string // also one that no token has
	queues  map[string][]string
	outages *outages

	mu     sync.Mutex
	counts map[string]int
	faults map[string]int
	slow   map[string]time.Duration // by operation, the slowest reply while Redis was there
	took   map[string]time.Duration // by operation, all of them
}

// TestAPI_fuzzed sends what the document allows, and what it forbids, to a server beside dispatchers that work, while Redis is
// stopped, frozen and started. ONBEAT_API_FUZZ says how long, ONBEAT_API_FUZZ_SEED with which seed. The test is not parallel,
// because it looks at all goroutines.
func TestAPI_fuzzed(t *testing.T) {
	long, seed := 10*time.Second, rand.Uint64()
	if v := os.Getenv("ONBEAT_API_FUZZ"); v != "" {
		var err error
		if long, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
	}
	if v := os.Getenv("ONBEAT_API_FUZZ_SEED"); v != "" {
		if _, err := fmt.Sscan(v, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("ONBEAT_API_FUZZ_SEED=%d", seed)
	srv := testredis.Private(t, "--appendonly", "yes")
	before, heap := goleak.IgnoreCurrent(), heapNow()
	func() {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f := newFuzz(t)
		defer f.client.CloseIdleConnections()
		stop := f.start(ctx, srv, true)
		defer stop()
		f.lookOnly(ctx, srv, seed, min(long/10, 10*time.Second))
		f.run(ctx, seed, 8, []string{"viewer", "operator", "narrow", "admin", "admin", "admin", "admin", "admin", "admin", "none", "wrong"}, func() { f.disturb(srv, long) })
		f.finish(ctx)
		if grown := int64(heapNow()) - int64(heap); grown > 64<<20 {
			t.Errorf("the heap has grown by %d MiB", grown>>20)
		}
		f.report(long)
	}()
	srv.Stop() // its process has goroutines here
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

func heapNow() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func newFuzz(t *testing.T) *fuzz {
	f := &fuzz{
		t: t, memory: &memory{known: map[string][]string{}}, outages: &outages{}, counts: map[string]int{}, faults: map[string]int{},
		slow: map[string]time.Duration{}, took: map[string]time.Duration{},
		roles:   map[string]Role{"viewer": Viewer, "operator": Operator, "admin": Admin, "narrow": Operator},
		secrets: map[string]string{"viewer": "v-0123456789abcdef", "operator": "o-0123456789abcdef", "admin": "a-0123456789abcdef", "wrong": "w-0123456789abcdef", "narrow": "n-0123456789abcdef"},
	}
	f.queues = map[string][]string{"narrow": {"q1"}}
	f.client = &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 16},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return f
}

// Write takes the lines that the server logs: of each it says that it is a bug.
func (f *fuzz) Write(line []byte) (int, error) {
	f.fault("logged: "+string(line[:min(len(line), 60)]), string(line))
	return len(line), nil
}

// start serves a namespace of its own, beside dispatchers if it works.
func (f *fuzz) start(ctx context.Context, srv *testredis.Server, works bool) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ns := testredis.Namespace(f.t)
	rdb, err := onbeat.Dial(srv.URL())
	if err != nil {
		f.t.Fatal(err)
	}
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: ns})
	if err != nil {
		f.t.Fatal(err)
	}
	s, err := New(d.Admin(), Config{Tokens: func() (list []Token) {
		for name, role := range f.roles {
			list = append(list, Token{Name: name, Role: role, Secret: f.secrets[name], Queues: f.queues[name]})
		}
		return list
	}, Log: zerolog.New(f).Level(zerolog.ErrorLevel)})
	if err != nil {
		f.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		if err := s.Serve(ctx, l, nil); err != nil {
			f.t.Error(err)
		}
	})
	if works {
		for _, release := range []string{"v1", "v2"} {
			all.Go(func() { f.work(ctx, rdb, ns, release) })
		}
	}
	f.base = "http://" + l.Addr().String()
	q := &request{method: "GET", path: "/openapi.json", header: http.Header{}}
	a, err := f.send(ctx, q)
	if err != nil {
		f.t.Fatal(err)
	}
	f.doc = readDocument(f.t, a.body)
	return func() {
		cancel()
		all.Wait()
		_ = rdb.Close()
	}
}

// work runs dispatchers, one after the other: each may be asked to drain.
func (f *fuzz) work(ctx context.Context, rdb redis.UniversalClient, ns, release string) {
	for ctx.Err() == nil {
		d, err := onbeat.New(rdb, onbeat.Config{Namespace: ns, Release: release, Drain: time.Second})
		if err != nil {
			f.t.Error(err)
			return
		}
		for name, err := range map[string]error{"echo": nil, "fail": errors.New("it fails"), "slow": context.DeadlineExceeded} {
			_ = d.Handle(name, handlers.Func(func(ctx context.Context, _ *task.Task) error {
				if name != "slow" {
					return err
				}
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
				return nil
			}))
		}
		if err := d.Run(ctx); err != nil && ctx.Err() == nil {
			f.t.Logf("the dispatcher of %s ends: %v", release, err)
		}
	}
}

// run sends requests from workers until the function returns.
func (f *fuzz) run(ctx context.Context, seed uint64, workers int, who []string, during func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for i := range workers {
		k := &maker{Rand: rand.New(rand.NewPCG(seed, uint64(i))), doc: f.doc, memory: f.memory, id: fmt.Sprintf("%x-%d", seed, i)}
		all.Go(func() {
			for ctx.Err() == nil {
				f.one(ctx, k.request(pick(k, f.doc.list...), pick(k, who...)))
			}
		})
	}
	during()
	cancel()
	all.Wait()
}

// one sends a request and judges what comes.
func (f *fuzz) one(ctx context.Context, q *request) {
	name := "none"
	if q.op != nil {
		name = q.op.ID
	}
	a, err := f.send(ctx, q)
	if ctx.Err() != nil {
		return
	}
	if _, bad := url.PathUnescape(q.path); err != nil && bad != nil {
		return // net/http answers, and closes the connection with the body unread
	}
	if err != nil {
		f.fault(name+" no reply", fmt.Sprintf("%s: %v", q, err))
		return
	}
	f.count(name, a.status)
	f.time(name, a)
	if err = f.judge(q, a); err == nil {
		err = f.further(ctx, q, a)
	}
	if err != nil && ctx.Err() == nil {
		f.fault(fmt.Sprintf("%s %d %.50s", name, a.status, err), fmt.Sprintf("%s: %d: %v\n%.600s", q, a.status, err, a.body))
	}
	if q.op != nil && a.status < 300 && !q.stream {
		f.memory.learn(q.op, a.body)
	}
}

// fault reports a fault, once for each kind.
func (f *fuzz) fault(kind, what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults[kind]++; f.faults[kind] == 1 {
		f.t.Error(what)
	}
}

func (f *fuzz) count(name string, status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if status > 0 {
		f.counts[fmt.Sprint(status)]++
		f.counts["requests"]++
	}
	if status == 0 || status < 300 {
		f.counts[name]++
	}
}

// time notes how long a reply took.
func (f *fuzz) time(name string, a *answered) {
	if f.outages.met(a) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slow[name] = max(f.slow[name], a.end.Sub(a.began).Round(time.Millisecond))
	f.took[name] += a.end.Sub(a.began).Round(time.Microsecond)
}

// disturb takes Redis away, in one way after the other.
func (f *fuzz) disturb(srv *testredis.Server, long time.Duration) {
	every := min(max(long/4, 2*time.Second), 25*time.Second)
	for n, end := 0, time.Now().Add(long); ; n++ {
		time.Sleep(min(every, time.Until(end)))
		if time.Until(end) <= 0 {
			return
		}
		f.outages.begin()
		if n%2 == 0 {
			srv.Stop()
			time.Sleep(every / 10)
			srv.Restart()
		} else {
			srv.Pause()
			time.Sleep(every / 5)
			srv.Resume()
		}
		f.outages.end()
	}
}

// nowField is the time of a reply.
var nowField = regexp.MustCompile(`"now":"[^"]*"`)

// lookOnly lets those who may only look, or not even that, send everything to a namespace that nobody works in. Nothing changes.
func (f *fuzz) lookOnly(ctx context.Context, srv *testredis.Server, seed uint64, long time.Duration) {
	quiet := &fuzz{t: f.t, client: f.client, memory: &memory{known: map[string][]string{}}, outages: f.outages, roles: f.roles, secrets: f.secrets, counts: map[string]int{}, faults: f.faults, slow: map[string]time.Duration{}, took: map[string]time.Duration{}}
	stop := quiet.start(ctx, srv, false)
	defer stop()
	put := func(method, path, body string) {
		a, err := quiet.send(ctx, &request{method: method, path: path, body: []byte(body), who: "admin", header: http.Header{"Content-Type": {"application/json"}}})
		if err != nil || a.status >= 300 {
			f.t.Fatal(method, path, err, a)
		}
	}
	for i := range 10 {
		name := fmt.Sprintf("quiet-%d", i)
		put("PUT", "/v1/schedules/"+name, `{"every":"1d","task":"echo","payload":{"a":1}}`)
		put("POST", "/v1/tasks", fmt.Sprintf(`{"type":"echo","id":%q,"in":"1d"}`, name))
		quiet.memory.note("schedules", name)
		quiet.memory.note("tasks", name)
	}
	put("DELETE", "/v1/schedules/quiet-9", "")
	state := func() (all string) {
		for _, path := range []string{"/v1/schedules", "/v1/tasks", "/v1/counts", "/v1/instances", "/v1/events", "/v1/schedules/quiet-0/revisions"} {
			a, err := quiet.send(ctx, &request{method: "GET", path: path, who: "admin", header: http.Header{}})
			if err != nil {
				f.t.Fatal(err)
			}
			all += path + " " + nowField.ReplaceAllString(string(a.body), "") + "\n"
		}
		return all
	}
	was := state()
	quiet.run(ctx, seed, 2, []string{"viewer", "viewer", "none", "wrong"}, func() { time.Sleep(long) })
	if is := state(); is != was {
		f.t.Errorf("who may only look changed something:\n%s\n%s", was, is)
	}
	f.t.Logf("looking only: %s", quiet.table())
}

// finish checks that all is well at the end.
func (f *fuzz) finish(ctx context.Context) {
	ask := func(method, path, body string) *answered {
		a, err := f.send(ctx, &request{method: method, path: path, who: "admin", body: []byte(body), header: http.Header{"Content-Type": {"application/json"}}})
		if err != nil {
			return &answered{body: []byte(err.Error())}
		}
		return a
	}
	testredis.Eventually(f.t, settle+10*time.Second, func() bool { return ask("POST", "/v1/instances/resume", "").status == 200 }, "the API does not recover")
	for _, path := range []string{"/healthz", "/readyz", "/v1/counts", "/v1/schedules"} {
		if a := ask("GET", path, ""); a.status != 200 {
			f.t.Errorf("at the end, %s: %d %s", path, a.status, a.body)
		}
	}
	if a := ask("POST", "/v1/tasks", `{"type":"echo","id":"the-last","keep":"1h","priority":"high"}`); a.status != 201 {
		f.t.Errorf("at the end: %d %s", a.status, a.body)
	}
	testredis.Eventually(f.t, 30*time.Second, func() bool {
		return strings.Contains(string(ask("GET", "/v1/tasks/the-last", "").body), `"done"`)
	}, "no task runs any more: %s", ask("GET", "/v1/counts", "").body)
}

func (f *fuzz) table() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var parts []string
	for _, name := range sorted(f.counts) {
		parts = append(parts, fmt.Sprintf("%s %d", name, f.counts[name]))
	}
	return strings.Join(parts, ", ")
}

// report says what was sent, and fails if the requests were not deep.
func (f *fuzz) report(long time.Duration) {
	f.t.Logf("in %s, by status, and by operation those that succeeded: %s", long, f.table())
	f.t.Logf("faults: %v", f.faults)
	f.t.Logf("the slowest replies: %v; in all: %v", f.slow, f.took)
	var never []string
	for _, op := range f.doc.list {
		if f.counts[op.ID] == 0 {
			never = append(never, op.ID)
		}
	}
	slices.Sort(never)
	if len(never) > 5 && f.counts["requests"] > 3_000 || long > time.Minute && len(never) > 0 {
		f.t.Errorf("no request succeeded of %v", never)
	}
}
