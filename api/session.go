package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// sessionTime is how long a browser stays signed in.
const sessionTime = 12 * time.Hour

// maxSignIn is the most bytes of a request to sign in.
const maxSignIn = 4 << 10

var (
	errSession = &refusal{http.StatusUnauthorized, "session-ended", "the session has ended", "sign in again"}
	errSignIn  = &refusal{http.StatusBadRequest, "invalid", "this is not a request to sign in", `send {"token": "…"}`}
)

// A session is a cookie that a browser gets for a token. No server keeps it: the cookie has the name of the token, its own end,
// and a MAC of both by the token. So each server that knows the token knows the session, and the session ends with the token.

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

// cookies are those of a request that have the name of the session.
func (a *access) cookies(r *http.Request) []*http.Cookie {
	return r.CookiesNamed(sessionCookie(a.namespace, a.isSecure(r)))
}

// sessionOf returns the value of the cookie of a token's holder.
func sessionOf(t *Token, namespace string, end time.Time) string {
	text := strconv.FormatInt(end.Unix(), 10) + "." + base64.RawURLEncoding.EncodeToString([]byte(t.Name))
	return text + "." + base64.RawURLEncoding.EncodeToString(sessionMAC(t, namespace, text))
}

func sessionMAC(t *Token, namespace, text string) []byte {
	mac := hmac.New(sha256.New, []byte(t.Secret))
	_, _ = io.WriteString(mac, hashOf("onbeat session", namespace, text))
	return mac.Sum(nil)
}

// holderOf returns the token of a session that has not ended.
func holderOf(list []Token, namespace, cookie string, now time.Time) *Token {
	i := strings.LastIndexByte(cookie, '.')
	if i < 0 {
		return nil
	}
	text := cookie[:i]
	sent, err := base64.RawURLEncoding.DecodeString(cookie[i+1:])
	until, name, ok := strings.Cut(text, ".")
	end, failed := strconv.ParseInt(until, 10, 64)
	if err != nil || !ok || failed != nil || now.Unix() >= end || end > now.Add(sessionTime+time.Minute).Unix() {
		return nil
	}
	for k := range list {
		t := &list[k]
		if t.Secret != "" && base64.RawURLEncoding.EncodeToString([]byte(t.Name)) == name && hmac.Equal(sent, sessionMAC(t, namespace, text)) {
			return t
		}
	}
	return nil
}

// holderOfOne returns the token of the one session among cookies. Another port or name of the host may have added cookies: what is no
// session does not count, and between two holders nobody chooses.
func holderOfOne(list []Token, namespace string, cookies []*http.Cookie, now time.Time) (found *Token) {
	for _, c := range cookies {
		t := holderOf(list, namespace, c.Value, now)
		if t != nil && found != nil && t != found {
			return nil
		}
		if t != nil {
			found = t
		}
	}
	return found
}

// session answers POST /session, which signs a browser in, and DELETE /session, which signs it out.
func (a *access) session(w http.ResponseWriter, r *http.Request, l *limits) {
	if http.NewCrossOriginProtection().Check(r) != nil {
		l.turnAway(w, r, errForeign)
		return
	}
	secure := a.isSecure(r)
	cookie := &http.Cookie{
		Name: sessionCookie(a.namespace, secure), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure, MaxAge: -1,
	}
	switch r.Method {
	case http.MethodDelete:
		http.SetCookie(w, cookie)
		w.WriteHeader(http.StatusNoContent)
		return
	case http.MethodPost:
	default:
		w.Header().Set("Allow", "POST, DELETE")
		problem(w, http.StatusMethodNotAllowed, &refusal{http.StatusMethodNotAllowed, "method-not-allowed", "the method " + r.Method + " is not allowed here", "POST or DELETE"})
		return
	}
	var asked struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSignIn)).Decode(&asked); err != nil {
		problem(w, errSignIn.status, errSignIn)
		return
	}
	list := a.tokens()
	found := tokenOf(list, asked.Token)
	if found < 0 {
		l.turnAway(w, r, errUnknownToken)
		return
	}
	cookie.Value, cookie.MaxAge = sessionOf(&list[found], a.namespace, time.Now().Add(sessionTime)), int(sessionTime/time.Second)
	http.SetCookie(w, cookie)
	w.WriteHeader(http.StatusNoContent)
}

// IdentityOf returns who sent the request of a context, for handlers that a [Server] calls.
func IdentityOf(ctx context.Context) Identity { return identityOf(ctx) }
