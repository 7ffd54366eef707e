package api

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/store"
)

// sessionTime is how long a browser stays signed in.
const sessionTime = 12 * time.Hour

// seenTime is how long a session that was found goes on while Redis is away.
const seenTime = 5 * time.Minute

// askTime and noteTime bound a question to Redis about a session, and a change of one. A Redis that is frozen must not use up the
// time that the request has.
const (
	askTime  = time.Second
	noteTime = 3 * time.Second
)

// maxSignIn is the most bytes of a request to sign in.
const maxSignIn = 4 << 10

var (
	errSession = &refusal{http.StatusUnauthorized, "session-ended", "the session has ended", "sign in again"}
	errSignIn  = &refusal{http.StatusBadRequest, "invalid", "this is not a request to sign in", `send {"token": "…"}`}
)

// A session is a cookie that a browser gets for a token: the end of the session, the name of the token, the session's own ID, and a MAC
// of them by the token. So only a server that knows the token knows the session, and the session ends with the token. It also ends when
// the browser signs out: Redis has the IDs of those that go on.

// sessionCookie is the name of the cookie. Two dispatchers on one host have two: browsers tell ports apart for pages, not for
// cookies. Over TLS the name begins with __Host-: a browser takes such a cookie from this host alone, and over TLS.
func sessionCookie(namespace string, secure bool) string {
	name := "onbeat_session_" + hashOf("cookie", namespace)[:8]
	if secure {
		return "__Host-" + name
	}
	return name
}

// isSecure reports whether a request came over TLS, to this server or to the proxy in front.
func (a *access) isSecure(r *http.Request) bool {
	return r.TLS != nil || a.proxy && r.Header.Get("X-Forwarded-Proto") == "https"
}

// mostCookies is how many cookies of a request are looked at.
const mostCookies = 4

// cookies are the first few of a request that have the name of the session, each once.
func (a *access) cookies(r *http.Request) (list []*http.Cookie) {
	for _, c := range r.CookiesNamed(sessionCookie(a.namespace, a.isSecure(r))) {
		if !slices.ContainsFunc(list, func(had *http.Cookie) bool { return had.Value == c.Value }) {
			list = append(list, c)
		}
		if len(list) == mostCookies {
			break
		}
	}
	return list
}

// sessionOf returns the value of the cookie of a token's holder.
func sessionOf(t *Token, namespace, id string, end time.Time) string {
	text := strconv.FormatInt(end.Unix(), 10) + "." + base64.RawURLEncoding.EncodeToString([]byte(t.Name)) + "." + id
	return text + "." + base64.RawURLEncoding.EncodeToString(sessionMAC(t, namespace, text))
}

func sessionMAC(t *Token, namespace, text string) []byte {
	mac := hmac.New(sha256.New, []byte(t.Secret))
	_, _ = io.WriteString(mac, hashOf("onbeat session", namespace, text))
	return mac.Sum(nil)
}

// holderOf returns the token of a session that has not reached its end, and the ID of the session.
func holderOf(list []Token, namespace, cookie string, now time.Time) (*Token, string) {
	parts := strings.Split(cookie, ".")
	if len(parts) != 4 {
		return nil, ""
	}
	text := strings.Join(parts[:3], ".")
	sent, err := base64.RawURLEncoding.DecodeString(parts[3])
	end, failed := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || failed != nil || now.Unix() >= end || end > now.Add(sessionTime+time.Minute).Unix() {
		return nil, ""
	}
	for k := range list {
		t := &list[k]
		if t.Secret != "" && base64.RawURLEncoding.EncodeToString([]byte(t.Name)) == parts[1] && hmac.Equal(sent, sessionMAC(t, namespace, text)) {
			return t, parts[2]
		}
	}
	return nil, ""
}

// holderOfOne returns the token of the sessions among cookies, and their IDs. Another port or name of the host may have added cookies:
// a cookie that is no session does not count, and between two holders nobody chooses.
func holderOfOne(list []Token, namespace string, cookies []*http.Cookie, now time.Time) (found *Token, ids []string) {
	for _, c := range cookies {
		t, id := holderOf(list, namespace, c.Value, now)
		if t != nil && found != nil && t != found {
			return nil, nil
		}
		if t != nil {
			found, ids = t, append(ids, id)
		}
	}
	return found, ids
}

// errNoWord refuses a session while Redis does not say whether it goes on.
var errNoWord = &refusal{http.StatusServiceUnavailable, "unreachable", "it is not known whether the session goes on: Redis does not answer", "try again later"}

// sessions are those that go on.
type sessions struct {
	noted admin.Sessions // nil: nobody notes them

	mu   sync.Mutex
	seen map[string]time.Time // session → when it was last found; pages that a person has open stay of use while Redis is away. Zero: it was ended here
}

// check returns why none of the sessions of a holder counts, or nil.
func (s *sessions) check(ctx context.Context, holder string, ids []string) *refusal {
	if s.noted == nil {
		return nil
	}
	why := errSession
	ctx, done := context.WithTimeout(ctx, askTime)
	defer done()
	for _, id := range ids {
		goesOn, err := store.Within(ctx, func() (bool, error) { return s.noted.HasSession(ctx, holder, id) })
		if s.find(id, goesOn, err) {
			return nil
		}
		if err != nil {
			why = errNoWord
		}
	}
	return why
}

// saw reports whether one of the sessions was found lately, as far as this process knows. It does not ask Redis.
func (s *sessions) saw(ids []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noted == nil || slices.ContainsFunc(ids, func(id string) bool { return time.Since(s.seen[id]) < seenTime })
}

// find reports whether a session counts, by what Redis said of it.
func (s *sessions) find(id string, goesOn bool, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, known := s.seen[id]
	switch {
	case known && at.IsZero(): // Redis was asked before the end, or has lost it
		return false
	case err != nil:
		return time.Since(at) < seenTime
	case !goesOn:
		delete(s.seen, id)
		return false
	}
	s.note(id, time.Now())
	return true
}

// note notes when a session was found. It needs mu.
func (s *sessions) note(id string, at time.Time) {
	if len(s.seen) >= knownAtMost || s.seen == nil {
		s.seen = map[string]time.Time{}
	}
	s.seen[id] = at
}

// begin notes a session in Redis.
func (s *sessions) begin(ctx context.Context, holder, id string, end time.Time) error {
	return s.change(ctx, func(ctx context.Context) error { return s.noted.BeginSession(ctx, holder, id, end) })
}

// end ends a session: here it does not come back, whatever becomes of Redis.
func (s *sessions) end(ctx context.Context, holder, id string) error {
	err := s.change(ctx, func(ctx context.Context) error { return s.noted.EndSession(ctx, holder, id) })
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.note(id, time.Time{})
	}
	return err
}

func (s *sessions) change(ctx context.Context, do func(context.Context) error) error {
	if s.noted == nil {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, noteTime)
	defer done()
	_, err := store.Within(ctx, func() (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// session answers POST /session, which signs a browser in, and DELETE /session, which signs it out.
func (a *access) session(w http.ResponseWriter, r *http.Request, l *limits) {
	if http.NewCrossOriginProtection().Check(r) != nil {
		l.turnAway(w, r, errForeign)
		return
	}
	switch r.Method {
	case http.MethodDelete:
		a.signOut(w, r, l)
	case http.MethodPost:
		a.signIn(w, r, l)
	default:
		w.Header().Set("Allow", "POST, DELETE")
		l.turnAway(w, r, &refusal{http.StatusMethodNotAllowed, "method-not-allowed", "the method " + r.Method + " is not allowed here", "POST or DELETE"})
	}
}

// answer sends a browser its cookie, or with an empty value has it forget the one that it has.
func (a *access) answer(w http.ResponseWriter, r *http.Request, value string) {
	secure, age := a.isSecure(r), int(sessionTime/time.Second)
	if value == "" {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: sessionCookie(a.namespace, secure), Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure, MaxAge: age,
	})
	w.WriteHeader(http.StatusNoContent)
}

func (a *access) signIn(w http.ResponseWriter, r *http.Request, l *limits) {
	var asked struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSignIn)).Decode(&asked); err != nil {
		l.turnAway(w, r, errSignIn)
		return
	}
	list := a.tokens()
	found := tokenOf(list, asked.Token)
	if found < 0 {
		l.turnAway(w, r, errUnknownToken)
		return
	}
	t, id, end := &list[found], rand.Text(), time.Now().Add(sessionTime)
	if !l.pace(r.Context(), l.senders.of(t.Name)) {
		later(w, errRate)
		return
	}
	if err := a.sessions.begin(r.Context(), t.Name, id, end); err != nil {
		problem(w, http.StatusServiceUnavailable, err)
		return
	}
	a.answer(w, r, sessionOf(t, a.namespace, id, end))
}

// signOut ends the sessions that a browser holds here. While Redis is away it says so, and the browser keeps them.
func (a *access) signOut(w http.ResponseWriter, r *http.Request, l *limits) {
	list, known := a.tokens(), false
	for _, c := range a.cookies(r) {
		t, id := holderOf(list, a.namespace, c.Value, time.Now())
		if t == nil {
			continue
		}
		known = true
		if !l.pace(r.Context(), l.senders.of(t.Name)) {
			later(w, errRate)
			return
		}
		if err := a.sessions.end(r.Context(), t.Name, id); err != nil {
			problem(w, http.StatusServiceUnavailable, err)
			return
		}
	}
	if known || l.paceStranger(w, r) {
		a.answer(w, r, "")
	}
}

// IdentityOf returns who sent the request of a context, for handlers that a [Server] calls.
func IdentityOf(ctx context.Context) Identity { return identityOf(ctx) }
