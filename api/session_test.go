package api

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
)

// desk is a server that lets in the holders of tokens, and whose tokens change.
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
	// A token that a request says aloud comes before a cookie that the browser adds.
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

// A browser adds the cookie to the requests of a page of another port, too.
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
