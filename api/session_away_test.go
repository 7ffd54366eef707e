package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/testredis"
)

// While Redis is away, a session that was found goes on for a while, no other is let in, and nobody is told that a session has ended.
func TestSession_whileRedisIsAway(t *testing.T) {
	t.Parallel()
	mini := testredis.Mini(t)
	d := openDeskOn(t, mini.Client, Config{})
	c, fresh := d.signIn("the operator's secret"), d.signIn("the operator's secret")
	d.ask("GET", "/v1/me", "", holding(c))
	mini.SetError("LOADING Redis is loading the dataset in memory")
	if w := d.ask("GET", "/v1/me", "", holding(c)); w.Code != 200 {
		t.Errorf("one that was found: %d %s", w.Code, w.Body)
	}
	for what, w := range map[string]*httptest.ResponseRecorder{
		"one that was not": d.ask("GET", "/v1/me", "", holding(fresh)), "signing out": d.ask("DELETE", "/session", "", holding(c)),
		"signing in": d.ask("POST", "/session", `{"token":"the operator's secret"}`),
	} {
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s: %d %v %s", what, w.Code, w.Header(), w.Body)
		}
	}
}

// ended are sessions of which none goes on.
type ended struct {
	admin.Sessions
	asked int
}

func (e *ended) HasSession(context.Context, string, string) (bool, error) {
	e.asked++
	return false, nil
}

// One request asks Redis after few sessions, and a stranger's asks after none before its pace, nor where everybody may go.
func TestSession_strangersAskRedisForLittle(t *testing.T) {
	t.Parallel()
	list := threeTokens()
	cookies := func(n int) (all []*http.Cookie) {
		for i := range n {
			all = append(all, &http.Cookie{Name: sessionCookie("shop", false), Value: sessionOf(&list[0], "shop", fmt.Sprint(i), time.Now().Add(time.Hour))})
		}
		return all
	}
	many := slices.Repeat(cookies(1), 500)
	for _, c := range []struct {
		path                 string
		cookies              []*http.Cookie
		requests, rate, most int
		want                 int
	}{
		{"/login", many, 1, 1000, 0, 200}, {"/assets/app.css", cookies(500), 1, 1000, 0, 200},
		{"/v1/me", many, 1, 1000, 1, 401}, {"/v1/me", cookies(500), 1, 1000, mostCookies, 401},
		{"/v1/me", cookies(1), 20, 5, 5, 429}, {"/login", cookies(1), 20, 5, 0, 429},
	} {
		e := &ended{}
		cfg := &Config{Namespace: "shop", Tokens: func() []Token { return list }, sessions: e}
		l := newLimits(cfg)
		l.strange.SetLimit(0.001)
		l.strange.SetBurst(c.rate)
		h := newAccess(cfg).guard(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		var w *httptest.ResponseRecorder
		for range c.requests {
			r := local(http.MethodGet, c.path)
			for _, one := range c.cookies {
				r.AddCookie(one)
			}
			w = httptest.NewRecorder()
			h.ServeHTTP(w, r)
		}
		if e.asked > c.most || w.Code != c.want {
			t.Errorf("%s with %d cookies, %d times: Redis was asked %d times, the last got %d", c.path, len(c.cookies), c.requests, e.asked, w.Code)
		}
	}
}

// A session that was signed out here stays out while Redis is away, though it was found a moment ago.
func TestSession_thatSignedOutStaysOutWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	mini := testredis.Mini(t)
	d := openDeskOn(t, mini.Client, Config{})
	c, second := d.signIn("the operator's secret"), d.signIn("the operator's secret")
	for _, each := range []*http.Cookie{c, second} {
		if w := d.ask("GET", "/v1/me", "", holding(each)); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if w := d.ask("DELETE", "/session", "", holding(c)); w.Code != http.StatusNoContent {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	mini.SetError("LOADING Redis is loading the dataset in memory")
	if w := d.ask("GET", "/v1/me", "", holding(c)); w.Code == 200 {
		t.Errorf("the one that signed out: %d %s", w.Code, w.Body)
	}
	if w := d.ask("GET", "/v1/me", "", holding(second)); w.Code != 200 {
		t.Errorf("another one: %d %s", w.Code, w.Body)
	}
	own := sessions{noted: d.admin.Sessions}
	mini.SetError("")
	if err := own.end(t.Context(), "a.b", "x"); err != nil || own.find("x", true, nil) {
		t.Errorf("what Redis said before the end counts: %v", err)
	}
}

// A Redis that is frozen answers nothing: a session that was found goes on all the same, and a refusal says the reason.
func TestSession_whileRedisIsFrozen(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	b, err := onbeat.New(srv.Client(), onbeat.Config{Namespace: testredis.Namespace(t)})
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{service: &service{t: t}}
	d.tokens.Store(&[]Token{{Name: "a", Role: Operator, Secret: "the operator's secret"}})
	if d.Server, err = New(b.Admin(), Config{Namespace: "shop", Tokens: func() []Token { return *d.tokens.Load() }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	c, fresh := d.signIn("the operator's secret"), d.signIn("the operator's secret")
	d.ask("GET", "/v1/me", "", holding(c))
	s := httptest.NewServer(d.Server) // with deadlines, which a recorder has not
	t.Cleanup(s.Close)
	srv.Pause()
	t.Cleanup(srv.Resume)
	for what, x := range map[string]struct {
		method string
		cookie *http.Cookie
		want   int
		kind   string
	}{
		"one that was found":   {"GET", c, http.StatusOK, `"operator"`},
		"one that was not":     {"GET", fresh, http.StatusServiceUnavailable, ":unreachable"},
		"one that is to leave": {"DELETE", c, http.StatusServiceUnavailable, ":unreachable"},
	} {
		path := map[string]string{"GET": "/v1/me", "DELETE": "/session"}[x.method]
		r, err := http.NewRequestWithContext(t.Context(), x.method, s.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(x.cookie)
		res, err := s.Client().Do(r)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != x.want || !strings.Contains(string(text), x.kind) {
			t.Errorf("%s: %d %s", what, res.StatusCode, text)
		}
	}
}
