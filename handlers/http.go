package handlers

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// HTTPConfig tunes the http handler. The zero value is ready to use. [HTTPConfig.Validate] refuses a number out of range;
// [HTTP] uses the default in its place.
type HTTPConfig struct {
	// DenyPrivate refuses every address that is not on the public internet: loopback, private and link-local networks, and
	// the metadata services of clouds. It is checked as each connection is made, redirects included, so that no name can
	// resolve its way around it. Set it where others may choose the URL. Default false.
	DenyPrivate bool `yaml:"deny_private"`

	// Timeout bounds a request if its payload has no timeout. Default 30s.
	Timeout time.Duration `yaml:"timeout"`

	// MaxRedirects is how many redirects are followed. Negative: none. Default 5.
	MaxRedirects int `yaml:"max_redirects"`

	// RedirectBody lets a redirect (307 or 308) send the body to another host than that of the payload. Default false: such
	// a redirect fails the run, because the server could send the body, with the secrets in it, anywhere.
	RedirectBody bool `yaml:"redirect_body"`

	// PassEnv names the environment variables of this process to which ${NAME} in the headers and the body of a payload may
	// refer. A producer can have each of them sent to any URL. Default none.
	PassEnv []string `yaml:"pass_env"`

	// MaxRetryAfter bounds the delay that a server asks for with Retry-After. Default 1h.
	MaxRetryAfter time.Duration `yaml:"max_retry_after"`

	// IdlePerHost is how many idle connections to one host are kept. Set it to at least the concurrency of the instance:
	// each request beyond it must connect anew. Default 512.
	IdlePerHost int `yaml:"idle_per_host"`

	// IdleTimeout is how long a connection is kept that nothing uses. Schedules that are further apart connect anew each time. A
	// server may close it sooner. Default 10m.
	IdleTimeout time.Duration `yaml:"idle_timeout"`

	// TLS is used for https. Default: that of net/http.
	TLS *tls.Config `yaml:"-"`
}

// Validate refuses, with one joined [*task.FieldError] for each, a negative duration or count, and a name in PassEnv to which
// nothing can refer.
func (c HTTPConfig) Validate() error {
	var list []error
	for _, f := range []struct {
		name     string
		negative bool
		value    string
	}{
		{"timeout", c.Timeout < 0, c.Timeout.String()},
		{"max_retry_after", c.MaxRetryAfter < 0, c.MaxRetryAfter.String()},
		{"idle_per_host", c.IdlePerHost < 0, fmt.Sprint(c.IdlePerHost)},
		{"idle_timeout", c.IdleTimeout < 0, c.IdleTimeout.String()},
	} {
		if f.negative {
			list = append(list, &task.FieldError{Field: f.name, Value: f.value, Reason: "negative", Hint: "leave it out for the default"})
		}
	}
	for _, name := range c.PassEnv {
		if !variableName.MatchString(name) {
			name, _, _ = strings.Cut(name, "=") // behind it is the value, which may be a secret
			list = append(list, &task.FieldError{Field: "pass_env", Value: name, Reason: "not a variable name", Hint: "letters, digits and _, such as API_TOKEN"})
		}
	}
	return wording.Join(list...)
}

func (c HTTPConfig) withDefaults() HTTPConfig {
	c.Timeout = cmp.Or(max(c.Timeout, 0), 30*time.Second)
	c.MaxRedirects = cmp.Or(c.MaxRedirects, 5)
	c.MaxRetryAfter = cmp.Or(max(c.MaxRetryAfter, 0), time.Hour)
	c.IdlePerHost = cmp.Or(max(c.IdlePerHost, 0), 512)
	c.IdleTimeout = cmp.Or(max(c.IdleTimeout, 0), 10*time.Minute)
	return c
}

// How much is read of the body of an answer. Its status has decided already.
const (
	errorBody = 1 << 10     // how much of an unexpected answer is shown
	readBody  = 64 << 10    // how much of any answer is read, so that its connection can be used again
	readTime  = time.Second // and for how long: a body that drips would hold a worker for the whole timeout
)

// StatusError is an answer with a status that the payload does not expect. Its body is text from the server.
type StatusError struct {
	// Target is the method and URL of the request, without user, password and query.
	Target string
	// Status is the status of the answer.
	Status int
	// Body is the start of the answer on one line, at most 1 KiB.
	Body string
}

// Error is one line.
func (e *StatusError) Error() string {
	s := strings.TrimSpace(fmt.Sprintf("%s: %d %s", e.Target, e.Status, http.StatusText(e.Status)))
	if e.Body != "" {
		s += ": " + e.Body
	}
	return s
}

// HTTP returns the handler that makes an HTTP request of each task. The payload:
//
//	{
//	  "method":  "POST",                        the default
//	  "url":     "https://shop.example/warm",   required; http or https
//	  "headers": {"Authorization": "Bearer …"}, none of Onbeat-* and traceparent
//	  "body":    "text" or any JSON value,      the latter as application/json unless the headers say otherwise
//	  "timeout": "5s",                          until the answer, redirects included; default 30s
//	  "expect":  [200, 204],                    default any 2xx
//	  "key":     "${SHOP_KEY}"                  signs the request; a reference alone
//	}
//
// In the values of headers (not of Host) and in the body, ${NAME} is the value that an environment variable of this process has
// when the task runs, if PassEnv names it: the payload, and so Redis, has the reference alone. Within JSON the value is escaped.
// $${NAME} is the text ${NAME}. A variable that is not allowed, or is not set or empty, fails the run with [ErrEnv].
//
// With a key, the request is signed as Standard Webhooks says: [github.com/onbeat/onbeat/handlers/notify.Verify] checks it. Its Webhook-Id is the ID of the task.
//
// The request has the headers Onbeat-Task-Id, Onbeat-Schedule (of scheduled tasks), Onbeat-Slot (RFC 3339 in UTC with nine
// digits after the second; the slot, else the due time), Onbeat-Attempt, Onbeat-Instance, Onbeat-Release, Onbeat-Fence, a
// traceparent, and a tracestate and the User-Agent onbeat/RELEASE, which the payload may replace.
//
// The status decides, as soon as it arrives. At most 64 KiB of the body are read after it, for at most a second, so that
// the connection can be used again. Its beginning is the output of the run ([Output]). An unexpected status fails the run with
// a [*StatusError]. If it is 429 or 503 with a Retry-After, that is the delay before the next attempt: at least a second and
// at most MaxRetryAfter. An invalid payload and a denied address ([ErrDenied]) make the task dead; every other failure is retried, also that of a payload with an unknown
// field ([ErrUnknownField]).
//
// Connections are kept for IdleTimeout and used again. If the server closes a connection at the very moment of a request, without
// a byte of an answer, the request is sent once more on another, with the same Onbeat-Attempt, unless the task allows only one
// attempt. The request of such a task must not be lost with an old connection, so it goes only over one that is new or was in use
// within the last second, of which no server is tired yet. A name is looked up for each new connection. A connection that is kept stays with the
// address that it has; one whose other end has vanished is closed within a minute.
//
// A redirect is followed only within its scheme, never from https to http or the other way, and not if its status is
// expected. To another host or port it takes none of the payload's headers except Accept and Content-Type, and takes the
// body only with RedirectBody: without it, a 307 or 308 that would send the body there fails the run.
//
// HTTP uses the proxy of the environment (HTTP_PROXY, HTTPS_PROXY, NO_PROXY), except with DenyPrivate: a proxy would look
// up names on its own. Errors show the method, scheme, host and path; never the user, the password, the query or a header. Where
// an answer repeats the value of a variable, in any case and with any white space, or its first 8 bytes or more, they
// show ${NAME}, also where the value is escaped, or encoded in base64 or hex, or where the answer has a word of it alone. They do not recognise a value that the receiver has
// changed in another way.
//
// The handler is also a [PayloadChecker], and an [io.Closer] that closes idle connections.
func HTTP(cfg HTTPConfig) TaskHandler {
	cfg = cfg.withDefaults()
	dialer := newDialer()
	proxy := http.ProxyFromEnvironment
	if cfg.DenyPrivate {
		dialer.Control, proxy = denyPrivate, nil
	}
	return newHTTP(cfg, dialer, proxy)
}

func newHTTP(cfg HTTPConfig, dialer *net.Dialer, proxy func(*http.Request) (*url.URL, error)) *httpHandler {
	return &httpHandler{
		cfg:   cfg,
		kept:  newTransport(cfg, cfg.IdleTimeout, dialer, proxy),
		fresh: newTransport(cfg, min(cfg.IdleTimeout, freshFor), dialer, proxy),
	}
}

type httpHandler struct {
	cfg   HTTPConfig
	kept  *http.Transport // of requests that may be sent again
	fresh *http.Transport // of the others: see freshFor
	cache httpCache
}

// CheckPayload implements [PayloadChecker].
func (h *httpHandler) CheckPayload(payload []byte) error {
	_, err := parseHTTP(payload)
	return err
}

// Close closes idle connections.
func (h *httpHandler) Close() error {
	h.kept.CloseIdleConnections()
	h.fresh.CloseIdleConnections()
	return nil
}

// Handle implements [TaskHandler].
func (h *httpHandler) Handle(ctx context.Context, t *task.Task) error {
	call, err := h.call(t.Payload)
	if err != nil {
		return refused(t.Payload, err)
	}
	if call, err = call.resolved(h.cfg.PassEnv); err != nil {
		return err
	}
	run, cancel := context.WithTimeout(ctx, call.timeout)
	defer cancel()
	client := &call.kept
	if !call.repeatable(t) {
		client = &call.fresh
	}
	res, err := client.Do(call.request(run, t))
	if err != nil {
		return call.failed(ctx, run, err)
	}
	if res.Body == http.NoBody && call.expected(res.StatusCode) {
		return nil // most answers: nothing to wait for, so no timer
	}
	defer func() { _ = res.Body.Close() }()
	// Closing the body ends a read that no context ends: on a connection that was switched to another protocol.
	defer time.AfterFunc(readTime, func() { cancel(); _ = res.Body.Close() }).Stop()
	keep := outputLimit(ctx)
	if call.expected(res.StatusCode) && keep == 0 {
		_, _ = io.CopyN(io.Discard, res.Body, readBody) // the status has decided
		return nil
	}
	start, _ := io.ReadAll(io.LimitReader(res.Body, int64(max(errorBody, keep+1)+call.secrets.Longest())))
	_, _ = io.CopyN(io.Discard, res.Body, int64(readBody-len(start)))
	if keep > 0 {
		Output(ctx, call.secrets.HideStart(string(start), keep+1)) // one byte more than is kept shows that there was more
	}
	if call.expected(res.StatusCode) {
		return nil
	}
	err = &StatusError{Target: call.target, Status: res.StatusCode, Body: oneLine(call.secrets.HideStart(string(start), errorBody), errorBody)}
	if d, ok := retryAfter(res, time.Now()); ok {
		return RetryAfter(err, min(max(d, time.Second), h.cfg.MaxRetryAfter))
	}
	return err
}

func (h *httpHandler) call(payload []byte) (*httpCall, error) {
	if c := h.cache.get(payload); c != nil {
		return c, nil
	}
	c, err := parseHTTP(payload)
	if err != nil {
		return nil, err
	}
	c.timeout = cmp.Or(c.timeout, h.cfg.Timeout)
	follow := func(req *http.Request, via []*http.Request) error { return c.redirect(req, via, h.cfg) }
	c.kept = http.Client{Transport: h.kept, CheckRedirect: follow}
	c.fresh = http.Client{Transport: h.fresh, CheckRedirect: follow}
	h.cache.put(payload, c)
	return c, nil
}

func (c *httpCall) request(ctx context.Context, t *task.Task) *http.Request {
	req := (&http.Request{
		Method: c.method, URL: c.url, Host: cmp.Or(c.host, c.url.Host), Header: c.headerFor(ctx, t),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if c.body != "" {
		req.ContentLength = int64(len(c.body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(c.body)), nil }
		req.Body, _ = req.GetBody()
	}
	return req
}

var (
	errOtherScheme   = errors.New("refused a redirect to another scheme")
	errBodyLeaves    = errors.New("refused a redirect that takes the body to another host")
	errManyRedirects = errors.New("too many redirects")
	errBadRedirect   = errors.New("the redirect has no usable Location")
)

// redirect decides whether to follow a redirect, and what the next request takes along.
func (c *httpCall) redirect(req *http.Request, via []*http.Request, cfg HTTPConfig) error {
	stays := sameHost(req.URL, c.url)
	switch {
	case len(c.expect) > 0 && c.expected(req.Response.StatusCode), cfg.MaxRedirects < 0:
		return http.ErrUseLastResponse // the redirect is the answer
	case len(via) > cfg.MaxRedirects:
		return fmt.Errorf("%w: %d", errManyRedirects, cfg.MaxRedirects)
	case req.URL.Scheme != c.url.Scheme:
		to := oneLine(req.URL.Scheme, 32)
		if len(c.env) > 0 {
			to = "another" // it may have a part of a secret
		}
		return fmt.Errorf("%w: from %s to %s", errOtherScheme, c.url.Scheme, to)
	case !stays && req.Body != nil && !cfg.RedirectBody:
		return fmt.Errorf("%w: %s", errBodyLeaves, oneLine(req.URL.Host, 256))
	}
	req.Header.Del("Referer") // it contains the query
	if !stays {
		for k := range req.Header {
			if !slices.Contains(keptHeaders, k) && !strings.HasPrefix(k, headerPrefix) {
				delete(req.Header, k)
			}
		}
	}
	return nil
}

// sameHost reports whether two URLs of one scheme have the same host and port.
func sameHost(a, b *url.URL) bool {
	standard := map[string]string{"http": "80", "https": "443"}[a.Scheme]
	return strings.EqualFold(a.Hostname(), b.Hostname()) && cmp.Or(a.Port(), standard) == cmp.Or(b.Port(), standard)
}

// keptHeaders are sent to another host too, along with those of onbeat.
var keptHeaders = []string{"Accept", "Content-Type", headerTraceparent, headerUserAgent}

// failed makes an error of what the client returned, without the URL in it.
func (c *httpCall) failed(ctx, run context.Context, err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if strings.Contains(err.Error(), "Location header") {
		err = errBadRedirect // the text of net/http repeats the header
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", c.target, context.Cause(ctx))
	case run.Err() != nil:
		return fmt.Errorf("%s: no answer within %s: %w", c.target, c.timeout, context.DeadlineExceeded)
	}
	err = fmt.Errorf("%s: %w", c.target, clean(c.veil(err)))
	if errors.Is(err, ErrDenied) {
		return Dead(err)
	}
	return err
}

// retryAfter reads the Retry-After of an answer 429 or 503: seconds, or a date, which may lie in the past.
func retryAfter(res *http.Response, now time.Time) (time.Duration, bool) {
	if res.StatusCode != http.StatusTooManyRequests && res.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	return parseRetryAfter(res.Header.Get("Retry-After"), now)
}
