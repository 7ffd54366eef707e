package api

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/testredis"
)

// desk is a server that lets in who has a token, and whose tokens change.
type desk struct {
	*service
	tokens atomic.Pointer[[]Token]
}

func openDesk(t *testing.T, cfg Config) *desk {
	t.Helper()
	return openDeskOn(t, testredis.Client(t), cfg)
}

func openDeskOn(t *testing.T, rdb *redis.Client, cfg Config) *desk {
	t.Helper()
	d := &desk{}
	d.tokens.Store(&[]Token{{Name: "a.b", Role: Operator, Secret: "the operator's secret"}, {Name: "eve", Role: Viewer, Secret: "the viewer's secret"}})
	cfg.Namespace, cfg.Tokens = "shop", func() []Token { return *d.tokens.Load() }
	d.service = serveOn(t, rdb, cfg)
	return d
}

// ask sends a request, which change may change.
func (d *desk) ask(method, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	d.t.Helper()
	r := httptest.NewRequestWithContext(d.t.Context(), method, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = "ops.example:8080", "192.0.2.7:5"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

// signIn returns the cookie that a browser gets for a secret.
func (d *desk) signIn(secret string, change ...func(*http.Request)) *http.Cookie {
	d.t.Helper()
	w := d.ask("POST", "/session", `{"token":"`+secret+`"}`, change...)
	if cookies := w.Result().Cookies(); w.Code == http.StatusNoContent && len(cookies) == 1 {
		return cookies[0]
	}
	d.t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	return nil
}

func holding(c *http.Cookie) func(*http.Request) { return func(r *http.Request) { r.AddCookie(c) } }

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func TestSession_letsABrowserInWithTheRoleOfItsToken(t *testing.T) {
	t.Parallel()
	d := openDesk(t, Config{})
	c := d.signIn("the operator's secret")
	if c.Name != sessionCookie("shop", false) || c.Path != "/" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || c.Domain != "" || c.MaxAge != 12*3600 {
		t.Errorf("%+v", c)
	}
	if strings.Contains(c.Value, "secret") {
		t.Errorf("the cookie has the secret in it: %s", c.Value)
	}
	if w := d.ask("GET", "/v1/me", "", holding(c)); w.Code != 200 || !strings.Contains(w.Body.String(), `"name":"a.b","role":"operator"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := d.ask("POST", "/v1/tasks", `{"type":"echo"}`, holding(c)); w.Code != http.StatusCreated {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := d.ask("POST", "/v1/tasks", `{"type":"echo"}`, holding(d.signIn("the viewer's secret"))); w.Code != http.StatusForbidden {
		t.Errorf("a viewer: %d %s", w.Code, w.Body)
	}
	// What a request says aloud comes before a cookie that the browser adds.
	if w := d.ask("GET", "/v1/me", "", holding(c), header("Authorization", "Bearer the viewer's secret")); !strings.Contains(w.Body.String(), `"eve"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	// A proxy in front may ask for a password, and pass it on.
	if w := d.ask("GET", "/v1/me", "", holding(c), header("Authorization", "Basic dTpwdw==")); w.Code != 200 || !strings.Contains(w.Body.String(), `"a.b"`) {
		t.Errorf("beside a password: %d %s", w.Code, w.Body)
	}
	for _, said := range []string{"", "Bearer", "Bearer x", "Bearer x, Basic y", "x"} {
		if w := d.ask("GET", "/v1/me", "", holding(c), header("Authorization", said)); w.Code != http.StatusUnauthorized {
			t.Errorf("%q beside a cookie: %d %s", said, w.Code, w.Body)
		}
	}
}

func TestSession_isSentOverTLSAloneWhereThereIsTLS(t *testing.T) {
	t.Parallel()
	d, behind := openDesk(t, Config{}), openDesk(t, Config{BehindProxy: true})
	if !d.signIn("the viewer's secret", func(r *http.Request) { r.TLS = &tls.ConnectionState{} }).Secure {
		t.Error("over TLS the cookie is not Secure")
	}
	https := header("X-Forwarded-Proto", "https")
	c := behind.signIn("the viewer's secret", https)
	if !strings.HasPrefix(c.Name, "__Host-") {
		t.Errorf("another name of the host may set it: %s", c.Name)
	}
	plain := &http.Cookie{Name: sessionCookie("shop", false), Value: c.Value}
	if in, out := behind.ask("GET", "/v1/me", "", https, holding(c)), behind.ask("GET", "/v1/me", "", https, holding(plain)); in.Code != 200 || out.Code != 401 {
		t.Errorf("over TLS: %d; by a cookie that others may set: %d", in.Code, out.Code)
	}
	if d.signIn("the viewer's secret", https).Secure || !behind.signIn("the viewer's secret", https).Secure || behind.signIn("the viewer's secret").Secure {
		t.Error("the word of a proxy counts where there is none, or does not count where there is one")
	}
}

func TestSession_endsWithItsTokenAndInTime(t *testing.T) {
	t.Parallel()
	d := openDesk(t, Config{})
	c := d.signIn("the operator's secret")
	ended := func(what string, c *http.Cookie) {
		t.Helper()
		if w := d.ask("GET", "/v1/me", "", holding(c)); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "session-ended") {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
	own := (*d.tokens.Load())[0]
	with := func(namespace string, end time.Duration, of Token) *http.Cookie {
		at := time.Now().Add(end)
		if err := d.admin.Sessions.BeginSession(t.Context(), of.Name, "id", at.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		return &http.Cookie{Name: c.Name, Value: sessionOf(&of, namespace, "id", at)}
	}
	if w := d.ask("GET", "/v1/me", "", holding(with("shop", time.Minute, own))); w.Code != 200 {
		t.Errorf("a session that goes on: %d %s", w.Code, w.Body)
	}
	ended("after its time", with("shop", -time.Second, own))
	ended("one that would last for longer than any", with("shop", 13*time.Hour, own))
	ended("of another namespace", with("bank", time.Minute, own))
	ended("by another secret", with("shop", time.Minute, Token{Name: own.Name, Secret: "a guess"}))
	ended("by no secret", with("shop", time.Minute, Token{Name: own.Name}))
	ended("in the name of another", with("shop", time.Minute, Token{Name: "eve", Secret: own.Secret}))
	for i := range c.Value {
		changed := []byte(c.Value)
		if changed[i] ^= 1; i == len(c.Value)-1 {
			changed = changed[:i] // the last letter has bits that count for nothing
		}
		ended("with another letter", &http.Cookie{Name: c.Name, Value: string(changed)})
	}
	for _, text := range []string{"", ".", "..", "...", c.Value + ".", c.Value + "x", "x" + c.Value, c.Value[:len(c.Value)/2]} {
		ended("cut", &http.Cookie{Name: c.Name, Value: text})
	}

	d.tokens.Store(&[]Token{{Name: own.Name, Role: Viewer, Secret: own.Secret}})
	if w := d.ask("GET", "/v1/me", "", holding(c)); !strings.Contains(w.Body.String(), `"role":"viewer"`) {
		t.Errorf("with another role: %d %s", w.Code, w.Body)
	}
	d.tokens.Store(&[]Token{{Name: own.Name, Role: Operator, Secret: "another secret of it"}})
	ended("with the token replaced", c)
	d.tokens.Store(&[]Token{{Name: "eve", Role: Viewer, Secret: "the viewer's secret"}})
	ended("with the token gone", c)
	d.tokens.Store(&[]Token{{Name: own.Name, Role: Operator}})
	ended("of a token without a secret", with("shop", time.Minute, Token{Name: own.Name}))
}

// A browser adds the cookie to what a page of another port sends, too.
func TestSession_isOfNoUseToPagesElsewhere(t *testing.T) {
	t.Parallel()
	d := openDesk(t, Config{})
	c := d.signIn("the operator's secret")
	for what, change := range map[string]func(*http.Request){
		"another site":        header("Sec-Fetch-Site", "cross-site"),
		"another port":        header("Sec-Fetch-Site", "same-site"),
		"an older browser":    header("Origin", "http://ops.example:9090"),
		"a page without name": header("Origin", "null"),
	} {
		for _, x := range []exchange{{"POST", "/v1/tasks", `{"type":"echo"}`, 0}, {"DELETE", "/v1/tasks/x", "", 0}, {"POST", "/session", `{"token":"the viewer's secret"}`, 0}, {"DELETE", "/session", "", 0}} {
			w := d.ask(x.method, x.path, x.body, holding(c), change)
			if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "foreign") || strings.Contains(w.Body.String(), "without tokens") || len(w.Result().Cookies()) > 0 {
				t.Errorf("%s: %s %s: %d %v %s", what, x.method, x.path, w.Code, w.Header(), w.Body)
			}
		}
	}
	for what, change := range map[string]func(*http.Request){"its own page": header("Sec-Fetch-Site", "same-origin"), "its own older page": header("Origin", "http://ops.example:8080")} {
		if w := d.ask("POST", "/v1/tasks", `{"type":"echo"}`, holding(c), change); w.Code != http.StatusCreated {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
}

// A page of another port, or of a name below the same domain, may set cookies that a browser sends first.
func TestSession_holdsBesideCookiesOfOthers(t *testing.T) {
	t.Parallel()
	d := openDesk(t, Config{})
	own, eve := d.signIn("the operator's secret"), d.signIn("the viewer's secret")
	rubbish := &http.Cookie{Name: own.Name, Value: "x"}
	for what, both := range map[string][2]*http.Cookie{"before it": {rubbish, own}, "behind it": {own, rubbish}, "an older one": {d.signIn("the operator's secret"), own}} {
		if w := d.ask("POST", "/v1/tasks", `{"type":"echo"}`, holding(both[0]), holding(both[1])); w.Code != http.StatusCreated {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
	for what, both := range map[string][2]*http.Cookie{"of another holder": {eve, own}, "behind it": {own, eve}, "none": {rubbish, rubbish}} {
		if w := d.ask("GET", "/v1/me", "", holding(both[0]), holding(both[1])); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "session-ended") {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
}

func TestSigningIn_refusesAllButAToken(t *testing.T) {
	t.Parallel()
	d := openDesk(t, Config{})
	long := `{"token":"` + strings.Repeat("x", maxSignIn) + `"}`
	for _, x := range []exchange{
		{"POST", "/session", `{"token":"a guess"}`, 401}, {"POST", "/session", `{"token":""}`, 401}, {"POST", "/session", `{}`, 401},
		{"POST", "/session", `{"token":7}`, 400}, {"POST", "/session", `token=x`, 400}, {"POST", "/session", ``, 400}, {"POST", "/session", long, 400},
		{"GET", "/session", "", 405}, {"PUT", "/session", `{}`, 405},
	} {
		if w := d.ask(x.method, x.path, x.body); w.Code != x.want || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s %.40s: %d, want %d: %s", x.method, x.body, w.Code, x.want, w.Body)
		}
	}
	w := d.ask("DELETE", "/session", "", holding(d.signIn("the viewer's secret")))
	if cookies := w.Result().Cookies(); w.Code != http.StatusNoContent || len(cookies) != 1 || cookies[0].MaxAge >= 0 || cookies[0].Value != "" || cookies[0].Path != "/" {
		t.Errorf("signing out: %d %v", w.Code, w.Header())
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/session", io.NopCloser(strings.NewReader(`{"token":"x"}`)))
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5"
	alone := httptest.NewRecorder()
	if serve(t, Config{}).ServeHTTP(alone, r); alone.Code != http.StatusNotFound {
		t.Errorf("without tokens: %d %s", alone.Code, alone.Body)
	}
}

// A browser that signs out ends its session on every server, and no other session.
func TestSession_endsWhereItSignedOut(t *testing.T) {
	t.Parallel()
	d := openDesk(t, Config{})
	other := &desk{service: &service{t: t}}
	var err error
	if other.Server, err = New(d.admin, Config{Namespace: "shop", Tokens: func() []Token { return *d.tokens.Load() }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	c, second := d.signIn("the operator's secret"), d.signIn("the operator's secret")
	for _, at := range []*desk{d, other} {
		if w := at.ask("GET", "/v1/me", "", holding(c)); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if w := d.ask("DELETE", "/session", "", holding(c)); w.Code != http.StatusNoContent {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for _, at := range []*desk{d, other} {
		if w := at.ask("GET", "/v1/me", "", holding(c)); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "session-ended") {
			t.Errorf("a copy of the cookie: %d %s", w.Code, w.Body)
		}
		if w := at.ask("GET", "/v1/me", "", holding(second)); w.Code != 200 {
			t.Errorf("another session of the token: %d %s", w.Code, w.Body)
		}
		if w := at.ask("GET", "/v1/me", "", holding(second), holding(c)); w.Code != 200 {
			t.Errorf("beside one that has ended: %d %s", w.Code, w.Body)
		}
	}
}

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
