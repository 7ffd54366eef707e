package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Role is what a token may do. Each role may do what the one before it may.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"   // read everything
	Operator Role = "operator" // also work with tasks, and pause, resume, trigger and backfill schedules
	Admin    Role = "admin"    // also change schedules and instances
)

var rank = map[Role]int{Viewer: 1, Operator: 2, Admin: 3}

// May reports whether the role may do what needs another one. An unknown role may do nothing.
func (r Role) May(need Role) bool { return rank[r] >= rank[need] && rank[need] > 0 }

// Token lets its holder in.
type Token struct {
	Name   string
	Role   Role
	Secret string
	// Queues and Types are those of the tasks that the holder may enqueue. Empty: all.
	Queues, Types []string
	// Trouble says why the secret could not be read: then it is the one that it was before, or none. Since is when that began.
	Trouble string
	Since   time.Time
}

// Identity is who sent a request.
type Identity struct {
	Name          string
	Role          Role
	Queues, Types []string // of the tasks that it may enqueue; empty: all

	salt string // known to nobody but the holder of the token and its servers; "" without tokens
}

type identityKey struct{}

// identityOf returns who sent the request of a context. Without one, it may do nothing.
func identityOf(ctx context.Context) Identity {
	who, _ := ctx.Value(identityKey{}).(Identity)
	return who
}

// access decides who is let in.
type access struct {
	tokens    func() []Token
	proxy     bool
	namespace string
	sessions  *sessions
}

// newAccess returns the access that a config describes.
func newAccess(cfg *Config) *access {
	a := &access{tokens: cfg.Tokens, proxy: cfg.BehindProxy, namespace: cfg.Namespace, sessions: &sessions{noted: cfg.sessions}}
	if a.tokens == nil {
		a.tokens = func() []Token { return nil }
	}
	return a
}

// Why a request is not let in.
var (
	errNoToken      = &refusal{http.StatusUnauthorized, "no-token", "a token is needed", "send the header Authorization: Bearer TOKEN"}
	errUnknownToken = &refusal{http.StatusUnauthorized, "unknown-token", "the token is not known", "it may have been replaced; api.tokens in the config of the server has those that are"}
	errNotLocal     = &refusal{http.StatusForbidden, "not-local", "without tokens the API answers only this machine, under a loopback name", "use 127.0.0.1 or localhost, or set api.tokens in the config of the server"}
	errForwarded    = &refusal{http.StatusForbidden, "not-local", "a proxy sent this request on, and without tokens the API answers only this machine", "set api.tokens in the config of the server, or api.behind_proxy if the proxy decides who is let in"}
	errForeign      = &refusal{http.StatusForbidden, "foreign", "a page of another site sent this request", "without a token of its own, only a page of this server may"}
)

// who returns the sender of a request, or why it is not let in. With tokens it is their holder. A browser sends no token by
// itself, but the cookie of a session: so the cookie counts for no page of another site. Without tokens it is anybody on this
// machine, or anybody the proxy in front lets through, but no page of another site in a browser there. Redis decides
// whether a session goes on.
func (a *access) who(r *http.Request) (Identity, *refusal) {
	who, ids, refused := a.claimed(r)
	if refused == nil && len(ids) > 0 {
		refused = a.sessions.check(r.Context(), who.Name, ids)
	}
	return who, refused
}

// claimed returns whom the token of a request names, or its sessions, and the IDs of these. It does not ask Redis.
func (a *access) claimed(r *http.Request) (who Identity, ids []string, refused *refusal) {
	list := a.tokens()
	switch {
	case len(list) > 0:
		if cookies := a.cookies(r); len(cookies) > 0 && !hasToken(r) {
			return a.signedIn(list, cookies, r)
		}
		who, refused = holder(list, r.Header.Values("Authorization"))
	case a.proxy:
		if http.NewCrossOriginProtection().Check(r) != nil {
			return who, nil, errForeign
		}
		who = Identity{Name: "proxy", Role: Admin}
	case !isLoopback(r.Host) || !isLoopback(r.RemoteAddr):
		refused = errNotLocal // a name that has been rebound to this machine
	case isForwarded(r):
		refused = errForwarded
	case isForeign(r):
		refused = errForeign
	default:
		who = Identity{Name: "local", Role: Admin}
	}
	return who, nil, refused
}

// signedIn returns the holder of sessions, and their IDs.
func (a *access) signedIn(list []Token, cookies []*http.Cookie, r *http.Request) (who Identity, ids []string, refused *refusal) {
	t, ids := holderOfOne(list, a.namespace, cookies, time.Now())
	switch {
	case http.NewCrossOriginProtection().Check(r) != nil:
		return who, nil, errForeign
	case t == nil:
		return who, nil, errSession
	}
	return t.identity(), ids, nil
}

// hasToken reports whether a request says aloud whose it is. A password that a browser has told a proxy in front is no token.
func hasToken(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Authorization"), func(value string) bool {
		scheme, _, _ := strings.Cut(value, " ")
		return !strings.EqualFold(scheme, "Basic")
	})
}

// holder returns the holder of the token in the header.
func holder(list []Token, header []string) (Identity, *refusal) {
	if len(header) == 0 {
		return Identity{}, errNoToken
	}
	scheme, secret, _ := strings.Cut(header[0], " ")
	if len(header) > 1 || !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(secret) == "" {
		return Identity{}, errNoToken
	}
	found := tokenOf(list, strings.TrimSpace(secret))
	if found < 0 {
		return Identity{}, errUnknownToken
	}
	return list[found].identity(), nil
}

// tokenOf returns the index of the token with a secret, or -1. It compares all of them, each in the same time.
func tokenOf(list []Token, secret string) int {
	given, found := sha256.Sum256([]byte(secret)), -1
	for i := range list {
		own := sha256.Sum256([]byte(list[i].Secret))
		if subtle.ConstantTimeCompare(given[:], own[:]) == 1 && list[i].Secret != "" {
			found = i
		}
	}
	return found
}

// identity is that of the holder.
func (t *Token) identity() Identity {
	return Identity{Name: t.Name, Role: t.Role, Queues: t.Queues, Types: t.Types, salt: hashOf("salt", t.Secret)}
}

// isLoopback reports whether an address, with or without a port, is this machine's alone.
func isLoopback(address string) bool {
	host := address
	if h, _, err := net.SplitHostPort(address); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

// isForwarded reports whether a proxy says that it sent the request for somebody else, who may be anywhere.
func isForwarded(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if len(r.Header.Values(name)) > 0 {
			return true
		}
	}
	return false
}

// isForeign reports whether a browser sent the request for a page that this server did not serve.
func isForeign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return true
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return false
	}
	u, err := url.Parse(origins[0])
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return len(origins) > 1 || err != nil || u.Scheme != scheme || !strings.EqualFold(u.Host, r.Host)
}

// isOpen reports whether a path is for everybody: probes have no token, and neither has a browser that opens the document.
// A path in another spelling is not.
func isOpen(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	switch path := r.URL.EscapedPath(); path {
	case "/healthz", "/readyz":
		return true
	case "/openapi.json", "/docs", "/docs/", "/login":
		return true
	default:
		if strings.HasPrefix(path, "/assets/") {
			return true
		}
		name, asset := strings.CutPrefix(path, "/docs/")
		return asset && !strings.ContainsAny(name, "%/") && !strings.Contains(name, "..")
	}
}

// isProbe reports whether a request asks after the health of this process. No limit may make it look ill.
func isProbe(r *http.Request) bool {
	path := r.URL.EscapedPath()
	return isOpen(r) && (path == "/healthz" || path == "/readyz")
}

// deny answers a request that is not let in.
func deny(w http.ResponseWriter, why *refusal) {
	if why.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="onbeat"`)
	}
	problem(w, why.status, why)
}

// isPage reports whether a browser opens a page of the dashboard.
func isPage(r *http.Request) bool {
	return r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/v1/") && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// toSignIn sends a browser to the page that asks for a token, which says if a session has ended, and from there back. A path that begins with two slashes would be the
// name of another host there.
func toSignIn(w http.ResponseWriter, r *http.Request, why *refusal) {
	next := r.URL.RequestURI()
	if strings.HasPrefix(next, "//") {
		next = "/"
	}
	ended := ""
	if why == errSession {
		ended = "ended=true&"
	}
	w.Header().Set("Location", "/login?"+ended+"next="+url.QueryEscape(next))
	w.WriteHeader(http.StatusSeeOther)
}

// guard lets requests in within the limits, and says who sent each. It is outermost.
func guard(cfg *Config, next http.Handler) http.Handler {
	return newAccess(cfg).guard(newLimits(cfg), next)
}

func (a *access) guard(l *limits, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer l.abort(r)
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		hurry(w, briefTime, briefTime)
		tokens := len(a.tokens()) > 0
		switch {
		case isProbe(r):
			next.ServeHTTP(w, r)
			return
		case r.URL.Path == "/session" && tokens:
			a.session(w, r, l)
			return
		}
		who, ids, refused := a.claimed(r)
		known := len(ids) == 0 || a.sessions.saw(ids)
		if isOpen(r) && (tokens || a.proxy) {
			if !known {
				who = Identity{}
			}
			l.open(w, r, who.Name, next) // without an identity: it looks the same for everybody
			return
		}
		if !known && !l.paceStranger(w, r) { // before Redis is asked: the session may have ended
			return
		}
		if len(ids) > 0 {
			refused = a.sessions.check(r.Context(), who.Name, ids)
		}
		switch {
		case refused != nil && !known:
			l.refuse(w, r, refused)
			return
		case refused != nil:
			l.turnAway(w, r, refused)
			return
		}
		ctx := context.WithValue(r.Context(), identityKey{}, who)
		ctx = context.WithValue(ctx, recheckKey{}, func() bool {
			now, refused := a.who(r)
			return refused == errNoWord || refused == nil && now.Name == who.Name && now.Role == who.Role
		})
		if r = r.WithContext(ctx); isOpen(r) {
			l.open(w, r, who.Name, next)
			return
		}
		l.serve(w, r, next)
	})
}

type recheckKey struct{}

// isStillIn reports whether the sender of a request, which takes long, would be let in now.
func isStillIn(ctx context.Context) bool {
	again, ok := ctx.Value(recheckKey{}).(func() bool)
	return !ok || again()
}
