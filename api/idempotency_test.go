package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestIdempotency_isAnsweredOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	const body, key = `{"type":"job","payload":{"a":1}}`, "Idempotency-Key"
	code, head, first := s.call(http.MethodPost, "/v1/tasks", body, key, "one")
	if code != 201 || head.Get(replayedHeader) != "" {
		t.Fatalf("%d %s", code, first)
	}
	code, head2, again := s.call(http.MethodPost, "/v1/tasks", body, key, "one")
	if code != 201 || again != first || head2.Get(replayedHeader) != "true" || head2.Get("Location") != head.Get("Location") || head.Get("Location") == "" {
		t.Errorf("sent again: %d %v %s", code, head2, again)
	}
	if code, _, text := s.call(http.MethodPost, "/v1/tasks", `{"type":"job","payload":{"a":2}}`, key, "one"); code != 422 {
		t.Errorf("with another body: %d %s", code, text)
	}
	if code, _, other := s.call(http.MethodPost, "/v1/tasks", body, key, "two"); code != 201 || other == first {
		t.Errorf("with another key: %d %s", code, other)
	}
	if code, _, _ := s.call(http.MethodPost, "/v1/tasks", body, key, strings.Repeat("x", 256)); code != 400 {
		t.Errorf("with a long key: %d", code)
	}
	if _, _, text := s.call(http.MethodGet, "/v1/counts", ""); !strings.Contains(text, `"waiting":2`) {
		t.Errorf("not two tasks: %s", text)
	}
}

// A refused request did nothing, so the sender may mend it and keep the key.
func TestIdempotency_forgetsWhatWasRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	if code, _, text := s.call(http.MethodPost, "/v1/tasks", `{"type":"a job"}`, "Idempotency-Key", "one"); code < 400 {
		t.Fatalf("%d %s", code, text)
	}
	if code, _, text := s.call(http.MethodPost, "/v1/tasks", `{"type":"job"}`, "Idempotency-Key", "one"); code != 201 {
		t.Errorf("%d %s", code, text)
	}
}

// The process died after it had added the tasks, and before it kept the answer.
func TestIdempotency_findsTheTasksOfALostTry(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	const body = `{"tasks":[{"type":"job"},{"type":"job","unique":"u","unique_for":"1h"},{"type":"job","id":"mine"}]}`
	code, _, first := s.call(http.MethodPost, "/v1/tasks", body, "Idempotency-Key", "one")
	if code != 200 {
		t.Fatalf("%d %s", code, first)
	}
	s.forgets()
	code, _, again := s.call(http.MethodPost, "/v1/tasks", body, "Idempotency-Key", "one")
	if code != 200 || !strings.Contains(again, `"id":"mine","added":false`) || strings.Count(again, `"added":true`) != 2 {
		t.Errorf("%d %s\nfirst %s", code, again, first)
	}
	if _, _, text := s.call(http.MethodGet, "/v1/counts", ""); !strings.Contains(text, `"waiting":3`) {
		t.Errorf("not three tasks: %s", text)
	}
}

// In a namespace that is split, the ID from the key lies where the task does, and is the same in each try.
func TestIdempotency_placesTasksWithAKeyOfTheirOwn(t *testing.T) {
	t.Parallel()
	d, err := onbeat.New(testredis.Client(t), onbeat.Config{Namespace: testredis.Namespace(t), Partitions: 6})
	if err != nil {
		t.Fatal(err)
	}
	ctx, ids := context.WithValue(t.Context(), derivedKey{}, seed{passing: new(bool), id: "id"}), [2][]string{}
	for try := range ids {
		var list []*task.Task
		for i := range 30 {
			list = append(list, task.New("job", nil, task.Key(fmt.Sprint("k", i), 1)))
		}
		done, err := derived{d.Admin().Tasks}.Enqueue(ctx, list)
		if err != nil || len(done) != len(list) {
			t.Fatalf("%+v, %v", done, err)
		}
		for i := range done {
			ids[try] = append(ids[try], done[i].ID)
			if done[i].Err != nil {
				t.Errorf("try %d: %+v", try, done[i])
			}
		}
	}
	if !slices.Equal(ids[0], ids[1]) {
		t.Errorf("IDs of the first try %v, and of the second %v", ids[0], ids[1])
	}
}

// When the answer is gone, after a day or over the cap, the key may come with another request. Its task is not the first one's.
func TestIdempotency_anotherRequestIsNotTakenForTheFirst(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	_, _, first := s.call(http.MethodPost, "/v1/tasks", `{"type":"job","payload":1}`, "Idempotency-Key", "one")
	s.forgets()
	code, _, other := s.call(http.MethodPost, "/v1/tasks", `{"type":"job","payload":2}`, "Idempotency-Key", "one")
	if code != 201 || other == first {
		t.Errorf("%d %s\nfirst %s", code, other, first)
	}
	if _, _, text := s.call(http.MethodGet, "/v1/counts", ""); !strings.Contains(text, `"waiting":2`) {
		t.Errorf("not two tasks: %s", text)
	}
}

// A sender that guesses the name of a token and a key of its holder knows all that the IDs of the tasks come from, but the token.
func TestIdempotency_nobodyElseTakesTheIDsOfAKey(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Tokens: func() []Token {
		return []Token{{Name: "shop", Role: Operator, Secret: "secret-of-the-shop"}, {Name: "mean", Role: Operator, Secret: "secret-of-another"}}
	}})
	guessed := hashOf("shop", "/v1/tasks", "order-1")
	for _, id := range []string{seed{id: guessed}.taskID(0), seed{id: hashOf(guessed, "")}.taskID(0), seed{id: hashOf(guessed, hashOf("salt", "secret-of-another"))}.taskID(0)} {
		if code, _, text := s.call(http.MethodPost, "/v1/tasks", `{"type":"other","id":"`+id+`"}`, "Authorization", "Bearer secret-of-another"); code != 201 {
			t.Fatalf("%d %s", code, text)
		}
	}
	code, head, text := s.call(http.MethodPost, "/v1/tasks", `{"type":"job"}`, "Authorization", "Bearer secret-of-the-shop", "Idempotency-Key", "order-1")
	if code != 201 {
		t.Fatalf("%d %s", code, text)
	}
	if _, _, got := s.call(http.MethodGet, head.Get("Location"), "", "Authorization", "Bearer secret-of-the-shop"); !strings.Contains(got, `"type":"job"`) {
		t.Errorf("%s was added: %s", text, got)
	}
}

func TestIdempotency_ofManyAtOnceOneGoesAhead(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	var mu sync.Mutex
	codes := map[string]int{}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			code, head, _ := s.call(http.MethodPost, "/v1/tasks", `{"type":"job"}`, "Idempotency-Key", "one")
			mu.Lock()
			defer mu.Unlock()
			codes[strconv.Itoa(code)+head.Get(replayedHeader)]++
		})
	}
	wg.Wait()
	if codes["201"] != 1 || codes["201"]+codes["201true"]+codes["409"] != 20 {
		t.Errorf("%v", codes)
	}
}

func TestSeed_idsLookLikeOthersAndDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range []string{hashOf("a", "b"), hashOf("ab", ""), hashOf("", "ab")} {
		for i := range 100 {
			id := seed{id: s}.taskID(i)
			if len(id) != 20 || seen[id] || strings.Trim(id, "0123456789abcdefghijklmnopqrstuv") != "" {
				t.Fatalf("%q", id)
			}
			seen[id] = true
		}
	}
}

// noted notes the tasks that are added.
type noted struct {
	admin.Tasks
	list []*task.Task
}

func (n *noted) Enqueue(_ context.Context, list []*task.Task) ([]admin.Enqueued, error) {
	n.list = list
	return nil, nil
}

// A task that the sender names is kept for a day. A task with an ID from a key is not, unless the answer may be too large to be kept.
func TestIdempotency_keepsTasksOnlyForALostTry(t *testing.T) {
	t.Parallel()
	ctx := context.WithValue(t.Context(), derivedKey{}, seed{passing: new(bool), id: "id"})
	for n, want := range map[int]time.Duration{1: retryTime, mostAnswered: retryTime, mostAnswered + 1: 0} {
		list := make([]*task.Task, n)
		for i := range list {
			list[i] = task.New("job", nil)
		}
		x := &noted{}
		if _, err := (derived{x}).Enqueue(ctx, list); err != nil || x.list[0].Keep != want {
			t.Errorf("of %d tasks the first is kept for %s, %v", n, x.list[0].Keep, err)
		}
	}
}

// A refusal for now is not remembered: when the request comes again with the key, the refused task is added, and no task is added twice.
func TestIdempotency_forgetsARefusalThatPasses(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	s.call(http.MethodPost, "/v1/tasks", `{"type":"job"}`) // its lane is there
	lanes := map[string]any{}
	for i := range queue.MostLanes {
		lanes["full"+strconv.Itoa(i)+"|normal|x"] = 1
	}
	s.redis.HSet(t.Context(), s.key("lanes"), lanes)
	bodies := []string{`{"tasks":[{"type":"job"},{"type":"other"}]}`, `{"tasks":[{"type":"other"}]}`}
	for i, body := range bodies {
		code, _, text := s.call(http.MethodPost, "/v1/tasks", body, "Idempotency-Key", strconv.Itoa(i))
		if code != 200 || strings.Count(text, `"refused":`) != 1 || strings.Count(text, `"added":true`) != 1-i {
			t.Errorf("refused: %d %s", code, text)
		}
	}
	for lane := range lanes {
		s.redis.HDel(t.Context(), s.key("lanes"), lane)
	}
	for i, body := range bodies {
		code, head, text := s.call(http.MethodPost, "/v1/tasks", body, "Idempotency-Key", strconv.Itoa(i))
		if code != 200 || head.Get(replayedHeader) != "" || strings.Count(text, `"added":true`) != 2-i {
			t.Errorf("sent again: %d %s", code, text)
		}
	}
	if _, _, text := s.call(http.MethodGet, "/v1/counts", ""); !strings.Contains(text, `"waiting":4`) {
		t.Errorf("not four tasks: %s", text)
	}
}

// running has another request with each key at work.
type running struct{}

func (running) ClaimAnswer(context.Context, string, string, time.Duration) (admin.AnswerClaim, error) {
	return admin.AnswerClaim{Asked: string(queue.AnswerRunning)}, nil
}

// The memory of a request counts its body once. The test is not parallel: others would allocate beside it.
func TestIdempotency_copiesNoBody(t *testing.T) {
	body := make([]byte, 8<<20)
	r, w := httptest.NewRequest(http.MethodPost, "/v1/tasks", bytes.NewReader(body)), httptest.NewRecorder()
	r.Header.Set(keyHeader, "one")
	ctx := context.WithValue(context.WithValue(r.Context(), identityKey{}, Identity{Role: Operator}), bodyKey{}, body)
	took := allocated(func() { remember(running{}, http.NotFoundHandler()).ServeHTTP(w, r.WithContext(ctx)) })
	if w.Code != errRunning.status || took > 1<<20 {
		t.Errorf("%d: a body of %d bytes took %d", w.Code, len(body), took)
	}
}
