package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/task"
)

func TestLimits_ofMemory(t *testing.T) {
	t.Parallel()
	l := newLimits(&Config{})
	l.bytes.free.Store(1 << 20)
	w := httptest.NewRecorder()
	l.serve(w, local(http.MethodGet, "/v1/tasks"), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 40 {
			if n, err := w.Write(make([]byte, 64<<10)); n != 64<<10 || err != nil { // for which others panic
				t.Fatalf("%d bytes are written: %v", n, err)
			}
		}
	}))
	if w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("a reply too large: %d %s", w.Code, w.Body)
	}
	r := local(http.MethodPost, "/v1/tasks")
	r.Body = io.NopCloser(bytes.NewReader(make([]byte, 3<<20)))
	r.ContentLength = -1
	w = httptest.NewRecorder()
	l.serve(w, r, http.HandlerFunc(echo))
	if w.Code != 503 {
		t.Errorf("a body too large: %d", w.Code)
	}
	if left, own := l.bytes.free.Load(), l.senders.of("").bytes.Load(); left != 1<<20 || own != 0 {
		t.Errorf("%d bytes are left of %d, and the sender has %d", left, 1<<20, own)
	}
}

// By default the memory is what docs/api.md says. Half of it is enough for the largest request, whatever the limit of payloads is: a sender alone is never refused for good.
func TestLimits_theLargestRequestHasRoom(t *testing.T) {
	t.Parallel()
	for _, payload := range []int{0, 1000, 10 << 20, 100 << 20} {
		l := newLimits(&Config{Limits: task.Limits{Payload: payload}})
		if has := l.bytes.free.Load(); payload <= task.DefaultPayloadLimit && has != bufferBytes {
			t.Errorf("payloads of %d bytes: %d bytes", payload, has)
		}
		for _, size := range []int{batchBody, int(l.body)} {
			memory := share{&l.bytes, l.senders.of("a")}
			need := size + size/2 + 1 + l.cost(size, 1<<30) // with the smaller half of the body, which is copied
			if !memory.take(need) {
				t.Errorf("payloads of %d bytes: a body of %d has no room", payload, size)
			}
			memory.give(need)
		}
	}
}

// Work that was done is not refused for want of memory for its answer. While the client takes the answer, only its memory is held.
func TestLimits_theWorkReservesTheMemoryOfItsReply(t *testing.T) {
	t.Parallel()
	l := newLimits(&Config{})
	l.bytes.free.Store(1 << 20)
	r := local(http.MethodPost, "/v1/tasks")
	body := bytes.Repeat([]byte("x"), 30_000)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	w := &taker{ResponseRecorder: httptest.NewRecorder(), l: l}
	l.serve(w, r, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		l.bytes.free.Add(-1 << 30) // others take all
		_, _ = w.Write(bytes.Repeat([]byte("x"), 100_000))
		l.bytes.free.Add(1 << 30)
	}))
	if w.Code != 200 || w.Body.Len() != 100_000 {
		t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
	}
	if w.held > 300_000 {
		t.Errorf("%d bytes are held while the answer is taken", w.held)
	}
}

// Redis is read no further than a sender has memory for, and a page of large tasks ends early: a client that follows next has them all.
func TestLimits_aPageOfLargeTasksTakesTheMemoryOfItsSender(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	const n = 10
	for i := range n {
		if code, _, body := s.call("POST", "/v1/tasks", fmt.Sprintf(`{"id":"t%d",%s`, i, large[1:])); code != http.StatusCreated {
			t.Fatalf("%d %s", code, body)
		}
	}
	l := newLimits(&s.cfg)
	h := newAccess(&s.cfg).guard(l, s.fallback(s.mux))
	ask := func(free int64, after string) (page admin.List[admin.Task], code int) {
		l.bytes.free.Store(free)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, local(http.MethodGet, "/v1/tasks?limit=1000&after="+after))
		if left, own := l.bytes.free.Load(), l.senders.of("local").bytes.Load(); left != free || own != 0 {
			t.Errorf("%d bytes are left of %d, and the sender has %d", left, free, own)
		}
		if w.Code == http.StatusOK {
			if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
				t.Fatal(err)
			}
		}
		return page, w.Code
	}
	if _, code := ask(40<<20, ""); code != http.StatusServiceUnavailable {
		t.Errorf("without the memory: %d", code)
	}
	page, code := ask(bufferBytes, "")
	if rest, again := ask(bufferBytes, page.Next); code != 200 || again != 200 || len(page.Items) == n || len(page.Items)+len(rest.Items) != n || rest.Next != "" {
		t.Errorf("%d: %d tasks, then %d: %d", code, len(page.Items), again, len(rest.Items))
	}
}

// taker notes what is held while an answer is taken.
type taker struct {
	*httptest.ResponseRecorder
	l    *limits
	held int64
}

func (t *taker) WriteHeader(status int) {
	t.held = 1<<20 - t.l.bytes.free.Load()
	t.ResponseRecorder.WriteHeader(status)
}
