package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestMain(m *testing.M) { testredis.Main(m) }

// world is one namespace on a Redis, with instances of the program behind one address. The program's own commands judge the deeds of an
// operator on a page: they go to Redis and know nothing of the pages.
type world struct {
	*rig.World
	front *front
}

func newWorld(t *testing.T) *world {
	t.Helper()
	chromium(t)
	return &world{rig.New(t), newFront(t)}
}

// privateWorld is a world on a Redis of its own, which the test may disturb.
func privateWorld(t *testing.T) (*world, *testredis.Server) {
	t.Helper()
	chromium(t)
	w, srv := rig.Private(t)
	return &world{w, newFront(t)}, srv
}

// browse opens a browser on the address of the instances.
func (w *world) browse() *tab {
	w.Helper()
	return browse(w.T, w.front.URL)
}

// head is the head of the configs: each instance serves the API at a port of its own.
const head = "concurrency: 20\nlease: 5s\napi: {listen: '127.0.0.1:0'}\n"

// tokens are the tokens of a world whose API asks for one, by role.
var tokens = map[string]string{"viewer": "viewer-0123456789abcdef", "operator": "operator-0123456789abcdef", "admin": "admin-0123456789abcdef"}

// guarded is the head of a config with a token for each role, in a file.
func (w *world) guarded() string {
	w.Helper()
	var list []string
	for role, token := range tokens {
		list = append(list, fmt.Sprintf("{name: the-%s, role: %s, token_file: %q}", role, role, w.File(role+".token", token)))
	}
	return strings.Replace(head, "api: {", "api: {tokens: ["+strings.Join(list, ", ")+"], ", 1)
}

var servedAt = regexp.MustCompile(`"url":"https?://([^"]+)"`)

// serve starts an instance of a release and puts it behind the address.
func (w *world) serve(release, head string, schedules ...string) *rig.Process {
	w.Helper()
	p := w.Serve(release, w.Config(release+".yaml", head, schedules...), "--release", release)
	p.Said("ready")
	p.Said("serving the API")
	w.front.add(servedAt.FindStringSubmatch(p.Log())[1])
	return p
}

// front is one address for all instances, as a load balancer has: a request goes to the newest of them that takes it.
type front struct {
	*httptest.Server
	mu   sync.Mutex
	list []string
	lost string // the path of a POST whose answer is to be lost
}

func newFront(t *testing.T) *front {
	t.Helper()
	f := &front{}
	f.Server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host },
		Transport:      &http.Transport{DialContext: f.dial, DisableKeepAlives: true, DisableCompression: true},
		ModifyResponse: f.passes,
		ErrorLog:       log.New(io.Discard, "", 0), // instances go while they are asked
	})
	t.Cleanup(f.Close)
	return f
}

func (f *front) add(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, address)
}

// loses has the answer to the next POST of a path be lost: the page gets a 502, and the instance has done what was asked.
func (f *front) loses(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = path
}

func (f *front) passes(r *http.Response) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Request.Method != http.MethodPost || r.Request.URL.Path != f.lost {
		return nil
	}
	f.lost = ""
	return errors.New("the answer is lost")
}

// dial connects to the newest instance that is there.
func (f *front) dial(context.Context, string, string) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, address := range slices.Backward(f.list) {
		if to, err := net.Dial("tcp", address); err == nil {
			return to, nil
		}
	}
	return nil, errors.New("no instance is there")
}

// said is what a command prints as JSON.
func said[T any](w *world, args ...string) (v T) {
	w.Helper()
	if err := json.Unmarshal([]byte(w.Must(append(args, "--json")...)), &v); err != nil {
		w.Fatalf("onbeat %v: %v", args, err)
	}
	return v
}

// known is a task, as the command shows it.
type known struct {
	ID, Type, State string
	Payload         json.RawMessage
}

// known is a task of the namespace, which has to exist.
func (w *world) known(id string) known {
	w.Helper()
	return said[known](w, "tasks", "show", id)
}

// list is the IDs of the tasks that a filter matches, at most 1000, in order.
func (w *world) list(filter ...string) (ids []string) {
	w.Helper()
	for _, t := range said[struct{ Items []known }](w, append([]string{"tasks", "list", "--limit", "1000"}, filter...)...).Items {
		ids = append(ids, t.ID)
	}
	slices.Sort(ids)
	return ids
}

// deadTasks is how many tasks are dead.
func (w *world) deadTasks() int {
	w.Helper()
	var s struct{ Counts struct{ Dead int } }
	if _, out, _ := w.Try("status", "--json"); json.Unmarshal([]byte(out), &s) != nil { // it is not well
		w.Fatal(out)
	}
	return s.Counts.Dead
}

// comesTo waits until each of some tasks is in a state.
func (w *world) comesTo(state string, ids ...string) {
	w.Helper()
	for _, id := range ids {
		testredis.Eventually(w, patience, func() bool {
			var task known
			code, out, _ := w.Try("tasks", "show", id, "--json")
			return code == 0 && json.Unmarshal([]byte(out), &task) == nil && task.State == state
		}, "%s never comes to be %s", id, state)
	}
}

// incident is an event, as the command prints it.
type incident struct {
	At     time.Time
	Event  string
	Fields map[string]string
}

// incidents are the events of a kind so far, the oldest first.
func (w *world) incidents(kind string) []incident {
	w.Helper()
	list := said[struct{ Items []incident }](w, "events", "--limit", "10000").Items
	return slices.DeleteFunc(list, func(e incident) bool { return e.Event != kind })
}

// adds enqueues tasks, each a line of JSON.
func (w *world) adds(lines ...string) {
	w.Helper()
	w.Must("enqueue", "--file", w.File("tasks.jsonl", strings.Join(lines, "\n")+"\n"))
}

// filled has what a page can show: schedules that run, fail, are paused and deleted, tasks in each state, two releases, and a lead that passed.
func (w *world) filled() {
	w.Helper()
	schedules := []string{
		"  - {name: well, every: 300ms, task: echo, payload: {message: a beat}}\n",
		"  - {name: fails, every: 1s, task: sleep, payload: {for: 1ms, fail: 1}, max_attempts: 1}\n",
		"  - {name: long, every: 2s, task: sleep, payload: {for: 1h}, overlap: skip, priority: high}\n",
		"  - {name: nightly, cron: '30 2 * * *', timezone: Asia/Seoul, task: echo, payload: {user: ann, password: s3cret}, secret: [password]}\n",
	}
	w.serve("v2", w.guarded(), append(schedules, "  - {name: retired, every: 1m, task: echo}\n")...)
	w.serve("v3", w.guarded(), schedules...)
	w.Must("schedules", "apply", w.File("hand.yaml", "[{name: by-hand, every: 1s, task: echo}, {name: halted, every: 1s, task: echo}, {name: gone, every: 1s, task: echo}]"))
	w.Must("schedules", "apply", w.File("hand.yaml", "[{name: by-hand, every: 2s, task: echo, payload: {order: 42}}]"))
	w.Must("schedules", "pause", "halted")
	w.Must("schedules", "delete", "gone")
	w.adds(
		`{"id":"runs","type":"sleep","payload":{"for":"1h"},"timeout":"2h"}`,
		`{"id":"due","type":"echo","in":"1h","payload":{"order":42},"key":"customer-7"}`,
		`{"id":"waits","type":"sleep","payload":{"for":"1ms","fail":1},"backoff":"1h","backoff_cap":"1h"}`,
		`{"id":"unhandled","type":"a-type-that-nothing-handles","queue":"mail"}`,
		`{"id":"dead","type":"sleep","payload":{"for":"1ms","fail":1},"max_attempts":2,"backoff":"1ms"}`,
		`{"id":"refused","type":"http","payload":{"url":"http://127.0.0.1:1/a-long-path-that-has-no-room-on-a-small-screen/`+strings.Repeat("x", 120)+`"},"max_attempts":1}`,
		`{"id":"done","type":"echo","payload":{"password":"s3cret"},"keep":"1h"}`,
	)
	w.comesTo("running", "runs")
	w.comesTo("dead", "dead", "refused")
	w.comesTo("done", "done")
}
