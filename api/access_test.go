package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

const (
	viewer   = "viewer-0123456789abcdef"
	operator = "operator-0123456789abcdef"
	admins   = "admin-0123456789abcdef"
)

func threeTokens() []Token {
	return []Token{
		{Name: "v", Role: Viewer, Secret: viewer}, {Name: "o", Role: Operator, Secret: operator, Queues: []string{"q"}},
		{Name: "a", Role: Admin, Secret: admins}, {Name: "broken", Role: Admin, Secret: ""},
	}
}

// seen returns a handler that notes who was let in.
func seen(who *Identity) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { *who = identityOf(r.Context()) })
}

func local(method, path string) *http.Request {
	r := httptest.NewRequest(method, path, http.NoBody)
	r.Host, r.RemoteAddr = "127.0.0.1:8080", "127.0.0.1:5555"
	return r
}

func TestGuard_letsInHoldersOfTokens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		header []string
		status int
		who    string
	}{
		{"none", nil, 401, ""},
		{"empty", []string{""}, 401, ""},
		{"no secret", []string{"Bearer "}, 401, ""},
		{"another scheme", []string{"Basic " + viewer}, 401, ""},
		{"wrong", []string{"Bearer " + viewer + "x"}, 401, ""},
		{"a part", []string{"Bearer " + viewer[:10]}, 401, ""},
		{"two", []string{"Bearer " + viewer, "Bearer " + admins}, 401, ""},
		{"a list", []string{"Bearer " + viewer + ", Bearer " + admins}, 401, ""},
		{"a viewer", []string{"Bearer " + viewer}, 200, "v"},
		{"in lower case", []string{"bearer " + operator}, 200, "o"},
		{"an admin", []string{"Bearer  " + admins}, 200, "a"},
	} {
		var who Identity
		h := guard(&Config{Tokens: threeTokens}, seen(&who))
		r := httptest.NewRequest(http.MethodGet, "http://elsewhere.example/v1/counts", http.NoBody) // from anywhere
		r.Header["Authorization"] = c.header
		r.Header.Set("Origin", "https://evil.example")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || who.Name != c.who {
			t.Errorf("%s: %d, %+v", c.name, w.Code, who)
		}
		if asks := w.Header().Get("WWW-Authenticate"); (asks == `Bearer realm="onbeat"`) != (c.status == 401) {
			t.Errorf("%s: it asks for %q", c.name, asks)
		}
	}
}

func TestGuard_withoutTokensLetsInThisMachineAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, host, remote, origin, site string
		want                             int
	}{
		{"a program here", "127.0.0.1:8080", "127.0.0.1:5", "", "", 200},
		{"by its name", "localhost:8080", "[::1]:5", "", "", 200},
		{"by IPv6", "[::1]:8080", "[::1]:5", "", "", 200},
		{"without a port", "localhost", "127.0.0.1:5", "", "", 200},
		{"another address of loopback", "127.9.9.9:1", "127.0.0.1:5", "", "", 200},
		{"our page", "127.0.0.1:8080", "127.0.0.1:5", "http://127.0.0.1:8080", "same-origin", 200},
		{"the address bar", "127.0.0.1:8080", "127.0.0.1:5", "", "none", 200},
		{"a rebound name", "evil.example:8080", "127.0.0.1:5", "", "", 403},
		{"a name like ours", "localhost.evil.example", "127.0.0.1:5", "", "", 403},
		{"an address like ours", "127.0.0.1.evil.example", "127.0.0.1:5", "", "", 403},
		{"any address", "0.0.0.0:8080", "127.0.0.1:5", "", "", 403},
		{"no host", "", "127.0.0.1:5", "", "", 403},
		{"from elsewhere, as if from here", "127.0.0.1:8080", "192.0.2.1:5", "", "", 403},
		{"another page", "127.0.0.1:8080", "127.0.0.1:5", "https://evil.example", "", 403},
		{"a page without an origin", "127.0.0.1:8080", "127.0.0.1:5", "null", "", 403},
		{"a page on another port", "127.0.0.1:8080", "127.0.0.1:5", "http://127.0.0.1:9090", "", 403},
		{"our page by another name", "127.0.0.1:8080", "127.0.0.1:5", "http://localhost:8080", "", 403},
		{"our page over TLS", "127.0.0.1:8080", "127.0.0.1:5", "https://127.0.0.1:8080", "", 403},
		{"an image of another page", "127.0.0.1:8080", "127.0.0.1:5", "", "cross-site", 403},
		{"an image of a page on another port", "127.0.0.1:8080", "127.0.0.1:5", "", "same-site", 403},
	} {
		for _, path := range []string{"/v1/counts", "/docs", "/openapi.json", "/metrics"} {
			var who Identity
			r := local(http.MethodGet, path)
			r.Host, r.RemoteAddr = c.host, c.remote
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			if c.site != "" {
				r.Header.Set("Sec-Fetch-Site", c.site)
			}
			w := httptest.NewRecorder()
			guard(&Config{Tokens: func() []Token { return nil }}, seen(&who)).ServeHTTP(w, r)
			if w.Code != c.want || (who.Role == Admin) != (c.want == 200) {
				t.Errorf("%s at %s: %d, %+v", c.name, path, w.Code, who)
			}
		}
	}
}

// A proxy on this machine, which the config does not name, would make everybody whom it serves an admin.
func TestGuard_withoutTokensLetsInNobodyWhomAProxySends(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via"} {
		for behindProxy, want := range map[bool]int{false: 403, true: 200} {
			r := local(http.MethodGet, "/v1/counts")
			r.Header.Set(name, "203.0.113.9")
			w := httptest.NewRecorder()
			guard(&Config{BehindProxy: behindProxy}, http.HandlerFunc(echo)).ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%s, behind a proxy %v: %d", name, behindProxy, w.Code)
			}
		}
	}
}

func TestGuard_behindAProxyLetsInWhatItSendsButNoPageOfAnotherSite(t *testing.T) {
	t.Parallel()
	for origin, want := range map[string]int{"": 200, "https://api.example": 200, "https://evil.example": 403} {
		var who Identity
		r := httptest.NewRequest(http.MethodPost, "https://api.example/v1/tasks", http.NoBody)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		guard(&Config{BehindProxy: true}, seen(&who)).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d", origin, w.Code)
		}
	}
}

// A path in another spelling, another method, or a header that names another, opens nothing.
func TestGuard_isOpenForProbesAndTheDocumentAlone(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]int{
		"GET /healthz": 200, "HEAD /readyz": 200, "GET /docs": 200, "GET /docs/app.js": 200, "GET /openapi.json": 200,
		"POST /healthz": 401, "GET //healthz": 401, "GET /healthz/": 401, "GET /%68ealthz": 401, "GET /healthz/../v1/tasks": 401,
		"GET /docs/../v1/tasks": 401, "GET /docs/%2e%2e/v1/tasks": 401, "GET /docs/..%2fv1%2ftasks": 401, "GET /docs/a/b": 401, "DELETE /docs": 401,
		"GET //v1/tasks": 401, "GET /v1/../healthz": 401, "GET /metrics": 401, "GET /": 401, "GET /v1/tasks?path=/healthz": 401,
	} {
		method, path, _ := strings.Cut(target, " ")
		r := local(http.MethodGet, "/")
		r.Method = method
		u, err := url.Parse("http://127.0.0.1:8080" + path)
		if err != nil {
			t.Fatal(err)
		}
		r.URL = u
		r.Header.Set("X-HTTP-Method-Override", "GET")
		r.Header.Set("X-Original-URL", "/healthz")
		r.Header.Set("X-Rewrite-URL", "/healthz")
		w := httptest.NewRecorder()
		guard(&Config{Tokens: threeTokens}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", target, w.Code, want)
		}
	}
}

func TestGuard_goesByTheTokensOfTheMoment(t *testing.T) {
	t.Parallel()
	list := threeTokens()
	var still func() bool
	h := guard(&Config{Tokens: func() []Token { return list }}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx := context.WithoutCancel(r.Context())
		still = func() bool { return isStillIn(ctx) }
	}))
	ask := func() int {
		r := local(http.MethodGet, "/v1/counts")
		r.Header.Set("Authorization", "Bearer "+viewer)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	if code := ask(); code != 200 || !still() {
		t.Fatalf("%d", code)
	}
	list = threeTokens()[1:]
	if code := ask(); code != 401 || still() {
		t.Errorf("a token that was taken away: %d", code)
	}
}

func TestRole_mayWhatLesserRolesMay(t *testing.T) {
	t.Parallel()
	roles := []Role{"", Viewer, Operator, Admin}
	for i, own := range roles {
		for j, need := range roles {
			if got, want := own.May(need), j > 0 && i >= j; got != want {
				t.Errorf("%q for %q: %t", own, need, got)
			}
		}
	}
	if Role("root").May(Viewer) || Admin.May("root") {
		t.Error("an unknown role may something")
	}
}

// A token of some types makes no schedule of others, in any way.
func TestToken_ofSomeTypesMakesSchedulesOfThoseAlone(t *testing.T) {
	t.Parallel()
	d := openDesk(t, Config{})
	d.tokens.Store(&[]Token{
		{Name: "all", Role: Admin, Secret: "the secret of all"},
		{Name: "some", Role: Admin, Secret: "the secret of some", Types: []string{"echo"}, Queues: []string{"q"}},
	})
	revisions := regexp.MustCompile(`"revision":(\d+)`)
	var known []string // the revisions that the schedule had, in order
	ask := func(secret, method, path, body string) int {
		auth := header("Authorization", "Bearer the secret of "+secret)
		for i, r := range known {
			body = strings.ReplaceAll(body, fmt.Sprintf(`"revision":%d}`, i+1), fmt.Sprintf(`"revision":%s}`, r))
		}
		w := d.ask(method, "/v1/schedules"+path, body, auth)
		if m := revisions.FindStringSubmatch(d.ask("GET", "/v1/schedules/a", "", auth).Body.String()); m != nil && !slices.Contains(known, m[1]) {
			known = append(known, m[1])
		}
		return w.Code
	}
	const foreign, own = `"every":"1h","task":"pay","queue":"q"}`, `"every":"1h","task":"echo","queue":"q"}`
	for _, x := range []struct {
		who, method, path, body string
		want                    int
	}{
		{"some", "POST", "", `{"name":"a",` + foreign, 403},
		{"some", "POST", "?dry_run=true", `{"name":"a",` + foreign, 403},
		{"some", "PUT", "/a", `{` + foreign, 403},
		{"some", "PUT", "/a", `{"every":"1h","task":"echo"}`, 403},                       // in the default queue
		{"some", "PUT", "/a", `{"heartbeat":{"url":"https://hc.example/a"},` + own, 403}, // it may not send requests
		{"all", "GET", "/a", "", 404},
		{"all", "PUT", "/a", `{` + foreign, 200},
		{"some", "PUT", "/a", `{` + own, 403}, // in the place of another's
		{"all", "PUT", "/a", `{` + own, 200},
		{"some", "PUT", "/a", `{"jitter":"1s",` + own, 200},
		{"all", "PUT", "/a", `{"heartbeat":{"url":"https://hc.example/a"},` + own, 200},
		{"some", "POST", "/a/revert", `{"revision":1}`, 403},
		{"some", "POST", "/a/revert", `{"revision":2}`, 200},
		{"some", "POST", "/a/revert", `{"revision":4}`, 403}, // with a heartbeat
		{"all", "POST", "/a/revert", `{"revision":1}`, 200},
		{"some", "POST", "/a/revert", `{"revision":2}`, 403}, // in the place of another's
		{"all", "DELETE", "/a", "", 200},
		{"some", "POST", "/a/restore", "", 403},
		{"all", "POST", "/a/restore", "", 200},
	} {
		if got := ask(x.who, x.method, x.path, x.body); got != x.want {
			t.Errorf("%s: %s %s %s: %d, want %d", x.who, x.method, x.path, x.body, got, x.want)
		}
	}
}

// A retry takes the task that the schedule has now. A token that may not enqueue this task retries it as it was.
func TestToken_ofSomeTypesRetriesNoOtherType(t *testing.T) {
	t.Parallel()
	d := openDesk(t, Config{})
	d.tokens.Store(&[]Token{{Name: "all", Role: Admin, Secret: "the secret of all"}, {Name: "some", Role: Operator, Secret: "the secret of some", Types: []string{"bad"}}})
	all, some := header("Authorization", "Bearer the secret of all"), header("Authorization", "Bearer the secret of some")
	d.ask("PUT", "/v1/schedules/s", `{"every":"1h","start":"2020-01-01T00:00:00Z","task":"bad","max_attempts":1}`, all)
	d.ask("POST", "/v1/schedules/s/backfill", `{"from":"90m"}`, all)
	runner, err := onbeat.New(d.redis, onbeat.Config{Namespace: d.ns})
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Handle("bad", handlers.Func(func(context.Context, *task.Task) error { return errors.New("it fails") })); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	var dead admin.List[admin.Task]
	testredis.Eventually(t, 30*time.Second, func() bool {
		w := d.ask("GET", "/v1/tasks?state=dead&schedule=s", "", all)
		return json.Unmarshal(w.Body.Bytes(), &dead) == nil && len(dead.Items) > 0
	}, "a slot is dead")
	path := "/v1/tasks/" + url.PathEscape(dead.Items[0].ID) + "/retry"
	d.ask("PUT", "/v1/schedules/s", `{"every":"1h","start":"2020-01-01T00:00:00Z","task":"pay"}`, all)
	if w := d.ask("POST", path, "", some); w.Code != 403 || !strings.Contains(w.Body.String(), "as_it_was") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	if w := d.ask("POST", path, `{"as_it_was":true}`, some); w.Code != 200 {
		t.Errorf("as it was: %d: %s", w.Code, w.Body)
	}
}

// dead is a dead task of a schedule that Redis does not show now.
type dead struct{ admin.Tasks }

func (dead) Get(context.Context, string) (admin.Task, error) {
	return admin.Task{Schedule: "s", Type: "bad"}, nil
}

func (dead) Retry(context.Context, string, bool) (string, error) { return "retried", nil }

type unseen struct{ admin.Schedules }

func (unseen) Get(context.Context, string) (admin.ScheduleDetail, error) {
	return admin.ScheduleDetail{}, task.ErrUnreachable
}

func TestToken_ofSomeTypesRetriesNothingOfAScheduleThatIsNotSeen(t *testing.T) {
	t.Parallel()
	tokens := func() []Token {
		return []Token{{Name: "some", Role: Operator, Secret: "the secret of some", Types: []string{"bad"}}}
	}
	s, err := New(&admin.Admin{Tasks: dead{}, Schedules: unseen{}}, Config{Tokens: tokens})
	if err != nil {
		t.Fatal(err)
	}
	r, w := local(http.MethodPost, "/v1/tasks/x/retry"), httptest.NewRecorder()
	r.Header.Set("Authorization", "Bearer the secret of some")
	if s.ServeHTTP(w, r); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
