package api

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

const patience = 30 * time.Second

const cancelJobs = `{"action":"cancel","filter":{"type":"job"},"about":5}`

// space is a namespace on a real Redis.
type space struct {
	*onbeat.Dispatcher
	q *queue.Queue
}

// namespace returns one with n tasks that are due much later.
func namespace(t *testing.T, n int) *space {
	t.Helper()
	rdb, name := testredis.Real(t), testredis.Namespace(t)
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: name})
	if err != nil {
		t.Fatal(err)
	}
	q, err := queue.New(rdb, queue.Partition{Namespace: name}, queue.Caps{})
	if err != nil {
		t.Fatal(err)
	}
	list := make([]*task.Task, n)
	for i := range list {
		list[i] = task.New("job", nil, task.In(time.Hour))
	}
	for part := range slices.Chunk(list, queue.MaxBatch) {
		if _, err := d.EnqueueAll(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	return &space{d, q}
}

// peer returns one more server of a namespace.
func peer(t *testing.T, d *space, cfg Config) *service {
	t.Helper()
	cfg.Log = zerolog.New(zerolog.NewTestWriter(t))
	s, err := New(d.Admin(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &service{s, t, nil}
}

// listen lets a server answer on a port until the test ends.
func (s *service) listen() {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l, nil) }()
	s.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
}

// errand sends a request that is answered with an errand.
func (s *service) errand(method, path, body string, headers ...string) (e admin.Errand) {
	s.t.Helper()
	status, _, text := s.call(method, path, body, headers...)
	if err := json.Unmarshal([]byte(text), &e); err != nil || status > 299 {
		s.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return e
}

// await waits until an errand is in one of the states.
func (s *service) await(id string, states ...queue.ErrandState) (e admin.Errand) {
	s.t.Helper()
	testredis.Eventually(s.t, patience, func() bool {
		e = s.errand(http.MethodGet, "/v1/errands/"+id, "")
		return slices.Contains(states, e.State)
	}, "the errand is %v", states)
	return e
}

func TestErrand_isDoneWithoutItsSender(t *testing.T) {
	t.Parallel()
	const n = 2500
	d := namespace(t, n)
	one, two := peer(t, d, Config{}), peer(t, d, Config{})
	status, head, text := one.call(http.MethodPost, "/v1/errands", cancelJobs)
	var e admin.Errand
	if err := json.Unmarshal([]byte(text), &e); err != nil || status != http.StatusAccepted || head.Get("Location") != "/v1/errands/"+e.ID {
		t.Fatalf("%d %v %s", status, head, text)
	}
	if e.Action != admin.CancelTasks || e.Filter.Type != "job" || e.About != 5 || e.By != "local" || e.Begun.IsZero() {
		t.Errorf("%+v", e)
	}
	e = two.await(e.ID, queue.ErrandDone)
	if e.Matched != n || e.Changed != n {
		t.Errorf("%+v", e)
	}
	if list := two.list(); len(list) != 1 || list[0].ID != e.ID {
		t.Errorf("%+v", list)
	}
	for _, ask := range []string{"stop", "resume"} {
		if e := two.errand(http.MethodPost, "/v1/errands/"+e.ID+"/"+ask, ""); e.State != queue.ErrandDone {
			t.Errorf("%s: %+v", ask, e)
		}
	}
	if n, err := d.Admin().Activity.Counts(t.Context()); err != nil || n.Due != 0 {
		t.Errorf("%+v, %v", n, err)
	}
	var by []string
	for _, x := range eventsOf(t, d, "tasks changed") {
		by = append(by, x.Fields["tasks"]+" by "+x.Fields["by"])
	}
	if strings.Join(by, ", ") != "1000 by local, 1000 by local, 500 by local" {
		t.Errorf("the events: %v", by)
	}
}

func eventsOf(t *testing.T, d *space, kind string) (list []admin.Event) {
	t.Helper()
	all, err := d.Admin().Activity.Events(t.Context(), admin.EventQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all.Items {
		if x.Event == kind {
			list = append(list, x)
		}
	}
	return list
}

func (s *service) list() []admin.Errand {
	s.t.Helper()
	_, _, text := s.call(http.MethodGet, "/v1/errands", "")
	var list admin.List[admin.Errand]
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

// A rolling update closes the server that works on it: another one goes on where that one was, and each task is met once.
func TestErrand_goesOnWhenItsServerCloses(t *testing.T) {
	t.Parallel()
	const n = 6500
	d := namespace(t, n)
	one, two := peer(t, d, Config{}), peer(t, d, Config{})
	id := one.errand(http.MethodPost, "/v1/errands", cancelJobs).ID
	testredis.Eventually(t, patience, func() bool { return two.errand(http.MethodGet, "/v1/errands/"+id, "").Changed >= 1000 }, "it has begun")
	one.Close()
	e := two.errand(http.MethodGet, "/v1/errands/"+id, "")
	if e.State != queue.ErrandWaiting || e.Changed == 0 || e.Changed == n {
		t.Fatalf("after its server closed: %+v", e)
	}
	if e := one.errand(http.MethodPost, "/v1/errands", cancelJobs); e.State != queue.ErrandWaiting {
		t.Errorf("one that a closed server was asked for: %+v", e)
	}
	two.listen()
	if e = two.await(id, queue.ErrandDone); e.Matched != n || e.Changed != n {
		t.Errorf("%+v", e)
	}
}

// Nothing tells of a crash but silence.
func TestErrand_goesOnWhenItsServerIsLost(t *testing.T) {
	t.Parallel()
	d := namespace(t, 10)
	s := peer(t, d, Config{})
	s.work.close() // so that another begins with it
	id := s.errand(http.MethodPost, "/v1/errands", cancelJobs).ID
	lost, ok, err := d.q.TakeErrand(t.Context())
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	peer(t, d, Config{}).listen()
	rdb, key := d.q.Redis(), d.q.Keys().Errands
	parts := strings.Split(rdb.HGet(t.Context(), key, id).Val(), " ")
	at, _ := strconv.ParseInt(parts[3], 10, 64)
	parts[3] = strconv.FormatInt(at-queue.ErrandSilence.Milliseconds(), 10)
	if e := s.errand(http.MethodGet, "/v1/errands/"+id, ""); e.State != queue.ErrandRunning {
		t.Errorf("while its server is heard: %+v", e)
	}
	if err := rdb.HSet(t.Context(), key, id, strings.Join(parts, " ")).Err(); err != nil {
		t.Fatal(err)
	}
	if e := s.await(id, queue.ErrandDone); e.Changed != 10 {
		t.Errorf("%+v", e)
	}
	if held, err := d.q.NoteErrand(t.Context(), &lost); held || err != nil {
		t.Errorf("the lost one still has it: %v, %v", held, err)
	}
}

func TestErrand_isStoppedByAnybodyAndGoesOn(t *testing.T) {
	t.Parallel()
	const n = 6500
	d := namespace(t, n)
	one, two := peer(t, d, Config{Tokens: threeTokens}), peer(t, d, Config{Tokens: threeTokens})
	as := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	id := one.errand(http.MethodPost, "/v1/errands", cancelJobs, as(operator)...).ID
	if p := two.problem(http.MethodPost, "/v1/errands/"+id+"/stop", "", as(viewer)...); p.Status != 403 {
		t.Errorf("a viewer stops it: %+v", p)
	}
	e := two.errand(http.MethodPost, "/v1/errands/"+id+"/stop", "", as(admins)...)
	if e.State != queue.ErrandStopped || e.StoppedBy != "a" || e.By != "o" {
		t.Errorf("%+v", e)
	}
	one.Close() // what it does is at an end
	e = two.errand(http.MethodGet, "/v1/errands/"+id, "", as(viewer)...)
	if e.State != queue.ErrandStopped || e.Changed == n {
		t.Errorf("%+v", e)
	}
	two.errand(http.MethodPost, "/v1/errands/"+id+"/resume", "", as(operator)...)
	testredis.Eventually(t, patience, func() bool {
		e = two.errand(http.MethodGet, "/v1/errands/"+id, "", as(viewer)...)
		return e.State == queue.ErrandDone
	}, "it is done")
	if e.Changed != n || e.StoppedBy != "" {
		t.Errorf("%+v", e)
	}
}

func TestErrand_needsTheRoleOfWhatItDoes(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Tokens: threeTokens})
	const path = "/v1/errands"
	for _, c := range []struct {
		token, body string
		want        int
	}{
		{viewer, `{"action":"retry","filter":{}}`, 403},
		{operator, `{"action":"retry","filter":{}}`, 202},
		{operator, `{"action":"delete","filter":{}}`, 403},
		{admins, `{"action":"delete","filter":{}}`, 202},
		{admins, `{"action":"delete"}`, 400},
		{admins, `{"action":"delete","filter":{"state":"due"}}`, 400},
		{admins, `{"action":"forget","filter":{}}`, 400},
		{admins, `{"action":"retry","filter":{"host":"x"}}`, 400},
		{admins, `{"action":"retry","filter":{},"about":-1}`, 400},
		{admins, `{"action":"retry","filter":{"error":"` + strings.Repeat("x", 5000) + `"}}`, 400},
	} {
		if status, _, text := s.call(http.MethodPost, path, c.body, "Authorization", "Bearer "+c.token); status != c.want {
			t.Errorf("%s %.80s: %d, want %d: %s", c.token, c.body, status, c.want, text)
		}
	}
	if p := s.problem(http.MethodGet, path+"/none", "", "Authorization", "Bearer "+viewer); p.Status != 404 {
		t.Errorf("%+v", p)
	}
}

// Who may not begin it may not have it go on either.
func TestErrand_ofDeletionsIsResumedByAdminsAlone(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Tokens: threeTokens})
	s.work.close()
	id := s.errand(http.MethodPost, "/v1/errands", `{"action":"delete","filter":{}}`, "Authorization", "Bearer "+admins).ID
	s.errand(http.MethodPost, "/v1/errands/"+id+"/stop", "", "Authorization", "Bearer "+operator)
	if p := s.problem(http.MethodPost, "/v1/errands/"+id+"/resume", "", "Authorization", "Bearer "+operator); p.Status != 403 {
		t.Errorf("%+v", p)
	}
	if e := s.errand(http.MethodPost, "/v1/errands/"+id+"/resume", "", "Authorization", "Bearer "+admins); e.State != queue.ErrandWaiting {
		t.Errorf("%+v", e)
	}
}

func TestErrand_beginsOnceForAKey(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	s.work.close()
	first := s.errand(http.MethodPost, "/v1/errands", cancelJobs, keyHeader, "one")
	again := s.errand(http.MethodPost, "/v1/errands", cancelJobs, keyHeader, "one")
	for _, key := range s.redis.Client.Keys(t.Context(), "*answer*").Val() { // the answer was lost
		s.redis.Client.Del(t.Context(), key)
	}
	lost := s.errand(http.MethodPost, "/v1/errands", cancelJobs, keyHeader, "one")
	if first.ID != again.ID || first.ID != lost.ID || len(s.list()) != 1 {
		t.Errorf("%s, %s, %s, %+v", first.ID, again.ID, lost.ID, s.list())
	}
	for i := range 3 {
		s.errand(http.MethodPost, "/v1/errands", cancelJobs, keyHeader, strconv.Itoa(i))
	}
	if p := s.problem(http.MethodPost, "/v1/errands", cancelJobs); p.Status != 409 || !strings.Contains(p.Detail, "4 of one sender at most") {
		t.Errorf("a fifth: %+v", p)
	}
}

// broken is a worker whose errands fail, or show a bug.
type broken struct{ errs []error }

func (b *broken) WorkErrand(context.Context) (bool, error) {
	if len(b.errs) == 0 {
		return false, nil
	}
	err := b.errs[0]
	if b.errs = b.errs[1:]; err == nil {
		panic("a bug")
	}
	return true, err
}

func TestErrandWork_aBugEndsNoProcess(t *testing.T) {
	t.Parallel()
	b := &broken{errs: []error{nil, errors.New("full"), nil, nil, nil, nil}}
	w := newErrandWork(b, zerolog.New(zerolog.NewTestWriter(t)))
	for range 4 {
		w.look()
		w.all.Wait()
	}
	if w.close(); len(b.errs) != 1 {
		t.Errorf("%d are left, and %d at work", len(b.errs), w.atWork)
	}
}

// What fails for good says why, and goes on when a person has mended it.
func TestErrand_thatFailsSaysWhyAndGoesOn(t *testing.T) {
	t.Parallel()
	d := namespace(t, 3)
	s := peer(t, d, Config{})
	rdb, held := d.q.Redis(), d.q.Keys().Held
	if err := rdb.Set(t.Context(), held, "of another program", 0).Err(); err != nil {
		t.Fatal(err)
	}
	id := s.errand(http.MethodPost, "/v1/errands", cancelJobs).ID
	if e := s.await(id, queue.ErrandFailed); !strings.Contains(e.Error, "wrong type") || strings.Contains(e.Error, " script: ") {
		t.Errorf("%+v", e)
	}
	if err := rdb.Del(t.Context(), held).Err(); err != nil {
		t.Fatal(err)
	}
	s.errand(http.MethodPost, "/v1/errands/"+id+"/resume", "")
	if e := s.await(id, queue.ErrandDone); e.Changed != 3 || e.Matched != 3 || e.Error != "" {
		t.Errorf("%+v", e)
	}
}

// A release that knows less of a filter must not do it to more tasks.
func TestErrand_ofANewerReleaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	d := namespace(t, 3)
	s := peer(t, d, Config{})
	if _, err := d.q.BeginErrand(t.Context(), "x", []byte(`{"action":"cancel","filter":{"host":"a"}}`)); err != nil {
		t.Fatal(err)
	}
	s.work.look()
	if e := s.await("x", queue.ErrandFailed); e.Changed != 0 || !strings.Contains(e.Error, "newer release") {
		t.Errorf("%+v", e)
	}
}
