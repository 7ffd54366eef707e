package client_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/api"
	"github.com/onbeat/onbeat/client"
	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

func TestMain(m *testing.M) { testredis.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// house is a namespace, and an API that serves it.
type house struct {
	direct *admin.Admin
	api    *api.Server
	url    string
	http   *http.Client
	before atomic.Pointer[func(w http.ResponseWriter, r *http.Request, next http.Handler)] // stands before the API
}

func newHouse(t *testing.T, cfg api.Config) *house { return newHouseOf(t, 1, cfg) }

// newHouseOf is newHouse with so many partitions.
func newHouseOf(t *testing.T, partitions int, cfg api.Config) *house {
	t.Helper()
	d, err := onbeat.New(testredis.Real(t), onbeat.Config{Namespace: testredis.Namespace(t), Partitions: partitions})
	must(t, err)
	h := &house{direct: d.Admin()}
	h.api, err = api.New(h.direct, cfg)
	must(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := h.before.Load(); f != nil {
			(*f)(w, r, h.api)
			return
		}
		h.api.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		h.api.Close()
		server.Close()
	})
	h.url, h.http = server.URL, server.Client()
	return h
}

func (h *house) client(t *testing.T, token string) *admin.Admin {
	t.Helper()
	c, err := client.New(h.url, client.Options{HTTP: h.http, Token: func() (string, error) { return token, nil }, Timeout: 30 * time.Second})
	must(t, err)
	return c
}

func (h *house) put(f func(http.ResponseWriter, *http.Request, http.Handler)) { h.before.Store(&f) }

// stub returns a client of a server that answers each request alike.
func stub(t *testing.T, status int, kind, body string) *admin.Admin {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		if status >= 300 && status < 400 {
			w.Header().Set("Location", "https://user:secret@elsewhere.example.com/login?token=secret")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, client.Options{HTTP: server.Client()})
	must(t, err)
	return c
}

// A call whose reply is lost is made again, and done once.
func TestPost_isDoneOnceThoughItsReplyIsLost(t *testing.T) {
	t.Parallel()
	h := newHouse(t, api.Config{})
	c := h.client(t, "")
	var calls atomic.Int32
	h.put(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPost && calls.Add(1) == 1 {
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // done, and the connection breaks
		}
		next.ServeHTTP(w, r)
	})
	list := []*task.Task{task.New("t", nil), task.New("t", nil)}
	done, err := c.Tasks.Enqueue(t.Context(), list)
	if err != nil || len(done) != 2 || !done[0].Added() || list[1].ID != done[1].ID {
		t.Fatalf("%+v, %v", done, err)
	}
	n, err := h.direct.Activity.Counts(t.Context())
	if err != nil || n.Waiting != 2 || calls.Load() != 2 {
		t.Errorf("%d wait after %d calls, %v", n.Waiting, calls.Load(), err)
	}
}

// The API answers that it may have added the tasks. The caller enqueues the same tasks again, and has each of them once.
func TestEnqueue_mayBeAskedAgainAfterAnError(t *testing.T) {
	t.Parallel()
	h := newHouse(t, api.Config{})
	c, ctx := h.client(t, ""), t.Context()
	var calls atomic.Int32
	var sent struct{ Tasks []admin.TaskSpec }
	h.put(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if calls.Add(1) > 1 {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &sent)
		}
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(httptest.NewRecorder(), r)
		problem(w, http.StatusServiceUnavailable, "unreplicated")
	})
	list := []*task.Task{task.New("t", nil), task.New("t", nil, task.Key("k", 1)), task.New("t", nil, task.ID("mine"))}
	if done, err := c.Tasks.Enqueue(ctx, list); !errors.Is(err, task.ErrUnreplicated) || len(done) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if list[0].ID == "" || list[1].ID == "" || list[0].ID == list[1].ID || list[2].ID != "mine" {
		t.Errorf("the IDs are %q, %q and %q", list[0].ID, list[1].ID, list[2].ID)
	}
	for i, keep := range []string{"90s", "90s", ""} { // an ID of the caller's choice is kept for longer
		if sent.Tasks[i].Keep != keep || list[i].Keep != 0 {
			t.Errorf("task %d is kept for %q, and the caller's for %s", i, sent.Tasks[i].Keep, list[i].Keep)
		}
	}
	done, err := c.Tasks.Enqueue(ctx, list)
	must(t, err)
	for i, e := range done {
		if there := e.There(); there == nil || there.By != "id" || e.ID != list[i].ID {
			t.Errorf("task %d: %+v", i, e)
		}
	}
	if n, err := h.direct.Activity.Counts(ctx); err != nil || n.Waiting != 3 {
		t.Errorf("%+v, %v", n, err)
	}
}

// An instance died after it had added the tasks, and another one does not know the answer: the tasks count as added.
func TestEnqueue_knowsTheTasksOfItsOwnEarlierTry(t *testing.T) {
	t.Parallel()
	h := newHouse(t, api.Config{})
	var calls atomic.Int32
	h.put(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		r.Header.Del("Idempotency-Key") // nothing of the try is known but its tasks
		if calls.Add(1) == 1 {
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
	list := []*task.Task{task.New("t", nil), task.New("t", nil, task.Unique("u", time.Hour))}
	done, err := h.client(t, "").Tasks.Enqueue(t.Context(), list)
	if err != nil || len(done) != 2 || !done[0].Added() || !done[1].Added() || calls.Load() != 2 {
		t.Errorf("%+v, %v after %d calls", done, err, calls.Load())
	}
	if n, err := h.direct.Activity.Counts(t.Context()); err != nil || n.Waiting != 2 {
		t.Errorf("%d wait, %v", n.Waiting, err)
	}
}

// In a namespace that is split, the ID of a task must lie where its key does. The client does not know where that is.
func TestEnqueue_leavesIDsThatMustLieSomewhereToTheAPI(t *testing.T) {
	t.Parallel()
	h := newHouseOf(t, 6, api.Config{})
	h.put(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		r.Header.Del("Idempotency-Key")
		next.ServeHTTP(w, r)
	})
	c, ctx := h.client(t, ""), t.Context()
	list := make([]*task.Task, 30)
	for i := range list {
		list[i] = task.New("t", nil, task.Key("k"+strconv.Itoa(i), 1))
	}
	list[29] = task.New("t", nil, task.ID("mine"))
	done, err := c.Tasks.Enqueue(ctx, list)
	must(t, err)
	for i, e := range done {
		if !e.Added() || e.ID == "" || e.ID != list[i].ID {
			t.Errorf("task %d: %+v", i, e)
		}
	}
	apart := []*task.Task{task.New("t", nil), task.New("t", nil, task.ID("n2"), task.Key("q2", 1))} // the caller's own
	var bad *producer.BatchError
	if _, err := c.Tasks.Enqueue(ctx, apart); !errors.As(err, &bad) || bad.Index != 1 || field.Of(err).Field != "id" || apart[0].ID != "" || apart[1].ID != "n2" {
		t.Errorf("%v, and the IDs are %q and %q", err, apart[0].ID, apart[1].ID)
	}
	if n, err := h.direct.Activity.Counts(ctx); err != nil || n.Waiting != 30 {
		t.Errorf("%+v, %v", n, err)
	}
}

func TestEnqueue_splitsWhatOneRequestCannotHold(t *testing.T) {
	t.Parallel()
	h := newHouse(t, api.Config{})
	c, ctx := h.client(t, ""), t.Context()
	list := make([]*task.Task, 2500)
	for i := range list {
		list[i] = task.New("t", nil)
	}
	list[1700].UniqueKey, list[2400].UniqueKey = "u", "u"
	done, err := c.Tasks.Enqueue(ctx, list)
	if err != nil || len(done) != len(list) || done[2400].There() == nil || done[2400].There().By != "unique" || done[2400].ID != done[1700].ID {
		t.Fatalf("%d, %v", len(done), err)
	}
	large := []*task.Task{}
	for range 12 {
		large = append(large, task.New("t", strings.Repeat("x", 900_000)))
	}
	if done, err := c.Tasks.Enqueue(ctx, large); err != nil || len(done) != 12 {
		t.Fatalf("%d, %v", len(done), err)
	}
	list[2300] = task.New("", nil)
	var bad *producer.BatchError
	if done, err := c.Tasks.Enqueue(ctx, list); !errors.As(err, &bad) || bad.Index != 2300 || bad.Of != 2500 || len(done) != 0 {
		t.Errorf("%d, %v", len(done), err)
	}
	over := []*task.Task{task.New("t", nil), task.New("t", strings.Repeat("x", 1<<20))} // only the API knows its limit
	if _, err := c.Tasks.Enqueue(ctx, over); !errors.As(err, &bad) || bad.Index != 1 || field.Of(err).Field != "payload" {
		t.Errorf("%v", err)
	}
	if n, err := h.direct.Activity.Counts(ctx); err != nil || n.Waiting != 2499+12 {
		t.Errorf("%d wait, %v", n.Waiting, err)
	}
}

// An error has the same words and matches the same, whichever way the call took.
func TestErrors_areThoseOfTheCall(t *testing.T) {
	t.Parallel()
	h := newHouse(t, api.Config{})
	c, ctx := h.client(t, ""), t.Context()
	_, err := h.direct.Tasks.Enqueue(ctx, []*task.Task{task.New("t", nil, task.ID("due"))})
	must(t, err)
	_, err = h.direct.Schedules.Apply(ctx, producer.Schedule{Name: "s", Rule: schedule.Every(time.Hour), Task: "t"})
	must(t, err)
	for name, x := range map[string]struct {
		call func(*admin.Admin) error
		is   error
	}{
		"no task":     {func(a *admin.Admin) error { _, err := a.Tasks.Get(ctx, "no/such?%2F"); return err }, task.ErrNotFound},
		"state":       {func(a *admin.Admin) error { _, err := a.Tasks.Retry(ctx, "due", false); return err }, &admin.StateError{}},
		"no schedule": {func(a *admin.Admin) error { _, err := a.Schedules.Pause(ctx, "none", ""); return err }, task.ErrNotFound},
		"no release":  {func(a *admin.Admin) error { _, err := a.Instances.Promote(ctx, "none"); return err }, task.ErrNotFound},
		"cursor":      {func(a *admin.Admin) error { _, err := a.Tasks.List(ctx, admin.TaskQuery{After: "x"}); return err }, task.ErrInvalid},
		"no rule": {func(a *admin.Admin) error {
			_, err := a.Schedules.Apply(ctx, producer.Schedule{Name: "x", Task: "t"})
			return err
		}, task.ErrInvalid},
		"no name": {func(a *admin.Admin) error {
			_, err := a.Schedules.Apply(ctx, producer.Schedule{Rule: schedule.Every(time.Hour), Task: "t"})
			return err
		}, task.ErrInvalid},
		"revision": {func(a *admin.Admin) error {
			_, err := a.Schedules.ApplyIf(ctx, producer.Schedule{Name: "s", Rule: schedule.Every(time.Hour), Task: "t"}, 0)
			return err
		}, admin.ErrRevision},
		"action": {func(a *admin.Admin) error { _, err := a.Tasks.Bulk(ctx, admin.Bulk{Action: "burn"}); return err }, task.ErrInvalid},
	} {
		want, got := x.call(h.direct), x.call(c)
		same := errors.Is(want, x.is) && errors.Is(got, x.is)
		if state, ok := x.is.(*admin.StateError); ok {
			same = errors.As(got, &state) && state.State == admin.TaskWaiting
		}
		if want == nil || got == nil || got.Error() != want.Error() || !same {
			t.Errorf("%s:\ndirect %v\nhttp   %v", name, want, got)
		}
	}
}

func TestErrors_ofOtherServersAndNone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, x := range []struct {
		status     int
		kind, body string
		is         error
	}{
		{200, "text/html", "<html>", client.ErrStrange},
		{200, "application/json", "<html>", client.ErrStrange},
		{302, "text/html", "", client.ErrStrange},
		{401, "text/html", "", client.ErrToken},
		{404, "text/html", "not found", client.ErrStrange},
		{502, "text/html", "bad gateway", task.ErrUnreachable},
		{503, "application/problem+json", `{"type":"urn:onbeat:problem:of-a-newer-release","detail":"later"}`, task.ErrBusy},
		{503, "application/problem+json", `{"type":"urn:onbeat:problem:full","detail":"redis is out of memory"}`, task.ErrFull},
		{401, "application/problem+json", `{"type":"urn:onbeat:problem:unknown-token","detail":"the token is not known"}`, client.ErrToken},
	} {
		_, err := stub(t, x.status, x.kind, x.body).Activity.Counts(ctx)
		if !errors.Is(err, x.is) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%d %s: %v", x.status, x.kind, err)
		}
	}
	if n, err := stub(t, 200, "application/json; charset=utf-8", `{"waiting":3,"of_a_newer_release":[]}`).Activity.Counts(ctx); err != nil || n.Waiting != 3 {
		t.Errorf("%+v, %v", n, err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	c, err := client.New(gone.URL, client.Options{Timeout: time.Second})
	must(t, err)
	if _, err := c.Activity.Counts(ctx); !errors.Is(err, task.ErrUnreachable) || strings.Contains(err.Error(), "redis") {
		t.Errorf("%v", err)
	}
}

func TestNew_refusesWhatIsNoAPI(t *testing.T) {
	t.Parallel()
	token := func() (string, error) { return "s3cret", nil }
	for url, want := range map[string]bool{
		"http://127.0.0.1:8080": true, "http://localhost:8080/": true, "http://[::1]:8080": true, "https://onbeat.example.com/beat": true,
		"http://onbeat.example.com": false, "redis://127.0.0.1": false, "http://": false, "http://me:s3cret@127.0.0.1": false,
		"http://127.0.0.1/?token=s3cret": false, "127.0.0.1:8080": false, "http://%zz:s3cret@": false,
	} {
		_, err := client.New(url, client.Options{Token: token})
		if (err == nil) != want || err != nil && (!errors.Is(err, task.ErrInvalid) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := client.New("http://onbeat.example.com", client.Options{Token: token, PlainHTTP: true}); err != nil {
		t.Error(err)
	}
}

func TestToken_decidesAndIsInNoError(t *testing.T) {
	t.Parallel()
	h := newHouse(t, api.Config{Tokens: func() []api.Token {
		return []api.Token{{Name: "ann", Role: api.Admin, Secret: "right-right-right"}, {Name: "eve", Role: api.Viewer, Secret: "viewer-viewer-viewer"}}
	}})
	ctx := t.Context()
	if _, err := h.client(t, "right-right-right").Instances.Pause(ctx, time.Second, ""); err != nil {
		t.Error(err)
	}
	for _, token := range []string{"", "wrong-wrong-wrong", "viewer-viewer-viewer"} {
		_, err := h.client(t, token).Instances.Pause(ctx, time.Second, "")
		if !errors.Is(err, client.ErrToken) || token != "" && strings.Contains(err.Error(), token) {
			t.Errorf("%q: %v", token, err)
		}
	}
}

func TestReply_isBounded(t *testing.T) {
	t.Parallel()
	text := `"` + strings.Repeat("x", 65<<20) + `"`
	if _, err := stub(t, 200, "application/json", text).Activity.Counts(t.Context()); !errors.Is(err, client.ErrStrange) {
		t.Errorf("%v", err)
	}
}

// A try that took longer than the timeout leaves as much time again for the API to end it.
func TestEnqueue_waitsForATryThatTimedOut(t *testing.T) {
	t.Parallel()
	h := newHouse(t, api.Config{})
	var calls atomic.Int32
	h.put(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if calls.Add(1) == 1 {
			_, _ = io.Copy(io.Discard, r.Body) // until then the server does not see that the client left
			<-r.Context().Done()
			return
		}
		if calls.Load() == 2 {
			running(w)
			return
		}
		next.ServeHTTP(w, r)
	})
	c, err := client.New(h.url, client.Options{HTTP: h.http, Timeout: 2 * time.Second})
	must(t, err)
	if done, err := c.Tasks.Enqueue(t.Context(), []*task.Task{task.New("t", nil)}); err != nil || !done[0].Added() || calls.Load() != 3 {
		t.Errorf("%+v, %v after %d calls", done, err, calls.Load())
	}
}

// running answers that an earlier try is being worked on.
func running(w http.ResponseWriter) { problem(w, http.StatusConflict, "running") }

func problem(w http.ResponseWriter, status int, kind string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"type":"urn:onbeat:problem:`+kind+`","detail":"said by a test"}`)
}

func TestEnqueue_waitsForAnEarlierTryThatTheAPIStillWorksOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, api.Config{})
	var calls atomic.Int32
	h.put(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch calls.Add(1) {
		case 1:
			panic(http.ErrAbortHandler)
		case 2, 3, 4:
			running(w)
		default:
			next.ServeHTTP(w, r)
		}
	})
	if done, err := h.client(t, "").Tasks.Enqueue(t.Context(), []*task.Task{task.New("t", nil)}); err != nil || !done[0].Added() || calls.Load() != 5 {
		t.Errorf("%+v, %v after %d calls", done, err, calls.Load())
	}
}
