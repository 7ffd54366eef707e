package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/sign"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// httpPayload is the payload of the http handler.
type httpPayload struct {
	Method  *string         `json:"method"`
	URL     *string         `json:"url"`
	Headers httpHeaders     `json:"headers"`
	Body    json.RawMessage `json:"body"`
	Timeout *string         `json:"timeout"`
	Expect  []int           `json:"expect"`
	Key     *string         `json:"key"`
}

// mostHeaders is how many headers a payload may have. The smallest takes twenty times its bytes in memory.
const mostHeaders = 1000

// httpHeaders are the headers of a payload.
type httpHeaders map[string]string

// UnmarshalJSON refuses too many headers before it makes any.
func (h *httpHeaders) UnmarshalJSON(text []byte) error {
	if len(text) > mostHeaders*len(`"":"",`) && hasMoreFields(text, mostHeaders) {
		return &task.FieldError{Field: "payload.headers", Reason: "too many", Hint: fmt.Sprintf("%d at most", mostHeaders)}
	}
	return json.Unmarshal(text, (*map[string]string)(h))
}

// hasMoreFields reports whether a text is an object with more than n fields.
func hasMoreFields(text []byte, n int) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil || text[0] != '{' {
		return false
	}
	for ; d.More(); n-- {
		var value json.RawMessage
		if n == 0 {
			return true
		}
		if _, err := d.Token(); err != nil || d.Decode(&value) != nil {
			return false
		}
	}
	return false
}

// httpCall is a payload made ready. All runs with the same payload share it, and no code changes it.
type httpCall struct {
	method  string
	url     *url.URL
	host    string // a Host header of the payload, or ""
	header  http.Header
	body    string
	json    bool // the body is JSON, in which values are escaped
	timeout time.Duration
	expect  []int  // empty: 2xx
	target  string // for error messages: method, scheme, host and path; no secrets
	kept    http.Client
	fresh   http.Client // see freshFor
	keyEnv  string      // the variable with the key that signs, or ""
	key     []byte      // its value, once it is resolved

	template bool        // the header or the body has references, maybe escaped ones
	env      []string    // the variables to which they refer
	secrets  *secret.Set // the values of those, once they are resolved
}

func (c *httpCall) expected(status int) bool {
	if len(c.expect) == 0 {
		return status >= 200 && status <= 299
	}
	return slices.Contains(c.expect, status)
}

// parseHTTP reads a payload. Every error is a [*task.FieldError] that names the field and shows no secret.
func parseHTTP(payload []byte) (*httpCall, error) {
	var p httpPayload
	if err := decodePayload(payload, &p, false); err != nil {
		return nil, err
	}
	c := &httpCall{method: http.MethodPost, expect: p.Expect}
	for _, step := range []func(*httpPayload) error{
		c.readURL, c.readMethod, c.readHeaders, c.readBody, c.readKey, c.readEnv, c.readTimeout, c.readExpect,
	} {
		if err := step(&p); err != nil {
			return nil, err
		}
	}
	c.target = c.method + " " + c.url.Scheme + "://" + oneLine(c.url.Host, errorBody) + c.url.EscapedPath()
	return c, nil
}

func (c *httpCall) readURL(p *httpPayload) error {
	const field, hint = "payload.url", "an absolute URL such as https://shop.example/warm"
	if p.URL == nil || *p.URL == "" {
		return &task.FieldError{Field: field, Reason: "missing", Hint: hint}
	}
	u, err := url.Parse(*p.URL)
	if err != nil {
		// The text of err repeats the URL, and so its password.
		return &task.FieldError{Field: field, Reason: "cannot be parsed", Hint: hint}
	}
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment, shown.RawFragment = nil, "", "", ""
	e := &task.FieldError{Field: field, Value: shown.String(), Hint: hint}
	if strings.Contains(e.Value, "@") { // a password in a URL without a scheme
		e.Value = ""
	}
	switch {
	case u.Scheme == "":
		e.Reason = "has no scheme"
	case u.Scheme != "http" && u.Scheme != "https":
		e.Reason = "its scheme is not http or https"
	case u.Opaque != "" || u.Hostname() == "":
		e.Reason = "has no host"
	case !goodPort(u):
		e.Reason = "has an invalid port"
	default:
		c.url = u
		return nil
	}
	return e
}

func goodPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}

func (c *httpCall) readMethod(p *httpPayload) error {
	if p.Method == nil || *p.Method == "" {
		return nil
	}
	m := *p.Method
	e := &task.FieldError{Field: "payload.method", Value: m, Hint: "POST (the default), GET, PUT, PATCH, DELETE, HEAD"}
	switch {
	case m == http.MethodConnect || m == http.MethodTrace:
		e.Reason = "not allowed"
	case m != strings.ToUpper(m):
		e.Reason = "must be in capitals"
	case len(m) > 32 || strings.ContainsFunc(m, func(r rune) bool { return (r < 'A' || r > 'Z') && r != '-' }):
		e.Reason = "not an HTTP method"
	default:
		c.method = m
		return nil
	}
	return e
}

// The headers that a payload may not have: those of the connection, which the HTTP client must control, and ours.
var hopHeaders = []string{"Connection", "Content-Length", "Expect", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func (c *httpCall) readHeaders(p *httpPayload) error {
	c.header = make(http.Header, len(p.Headers)+1)
	for name, value := range p.Headers {
		e := &task.FieldError{Field: "payload.headers", Value: name}
		key := textproto.CanonicalMIMEHeaderKey(name)
		same := textproto.CanonicalMIMEHeaderKey(hyphened(name))
		switch {
		case !isToken(name):
			e.Value = tokenOf(name) // a header written as one text has its value behind the name
			e.Reason, e.Hint = "not a header name", "letters, digits and hyphens"
		case strings.HasPrefix(same, headerPrefix) || same == headerTraceparent:
			e.Reason, e.Hint = "is set by onbeat and cannot be overridden", "leave it out"
		case slices.Contains(hopHeaders, same):
			e.Reason, e.Hint = "is a header of the connection, which onbeat sets", "leave it out"
		case strings.ContainsFunc(value, notInHeader):
			e.Reason, e.Hint = "its value has a control character", "one line of text" // and the value may be a secret
		case c.header[key] != nil || key == "Host" && c.host != "":
			e.Reason, e.Hint = "appears twice", "header names ignore case"
		case key == "Host":
			if value == "" || strings.ContainsAny(value, " \t/?#@${}") {
				e.Reason, e.Hint = "its value is not a host", "a name, or a name:port"
				return e
			}
			c.host = value
			continue
		default:
			c.header[key] = []string{value}
			continue
		}
		return e
	}
	return nil
}

// notInHeader reports the characters that no value of a header may have.
func notInHeader(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// hyphened returns a header name as many receivers see it. CGI and its descendants have the same variable for Onbeat-Fence
// and Onbeat_Fence, and some for any other character in that place.
func hyphened(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name)
}

func isToken(s string) bool { return s != "" && tokenOf(s) == s }

// tokenOf is what a text begins with that may be in the name of a header.
func tokenOf(s string) string {
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			continue
		}
		return s[:i]
	}
	return s
}

func (c *httpCall) readBody(p *httpPayload) error {
	body := bytes.TrimSpace(p.Body)
	switch {
	case len(body) == 0 || string(body) == "null":
		return nil
	case body[0] == '"':
		return json.Unmarshal(body, &c.body) // it is valid: it was cut out of valid JSON
	}
	c.body, c.json = string(body), true
	if c.header["Content-Type"] == nil {
		c.header["Content-Type"] = []string{"application/json"}
	}
	return nil
}

// readKey takes only a reference, so that no key comes into Redis.
func (c *httpCall) readKey(p *httpPayload) error {
	if p.Key == nil || *p.Key == "" {
		return nil
	}
	match := reference.FindStringSubmatch(*p.Key)
	if match == nil || match[0] != *p.Key || strings.HasPrefix(match[0], "$$") {
		return &task.FieldError{Field: "payload.key", Reason: "not a reference to a variable", Hint: "such as ${SHOP_KEY}, and SHOP_KEY in http.pass_env"}
	}
	for _, name := range []string{sign.HeaderID, sign.HeaderTimestamp, sign.HeaderSignature} {
		if c.header[name] != nil {
			return &task.FieldError{Field: "payload.headers", Value: name, Reason: "is set by the signature", Hint: "leave it or the key out"}
		}
	}
	c.keyEnv = match[1]
	return nil
}

// parseDuration reads a duration of a payload: as Go writes it, or in days and weeks, as in the rule of a schedule.
func parseDuration(s string) (time.Duration, error) {
	if d, err := time.ParseDuration(s); err == nil {
		return d, nil
	}
	return schedule.ParseDuration(s)
}

func (c *httpCall) readTimeout(p *httpPayload) error {
	if p.Timeout == nil || *p.Timeout == "" {
		return nil
	}
	d, err := parseDuration(*p.Timeout)
	if err != nil || d <= 0 {
		return &task.FieldError{Field: "payload.timeout", Value: *p.Timeout, Reason: "not a duration above zero",
			Hint: `such as "5s" or "1m30s"`}
	}
	c.timeout = d
	return nil
}

func (c *httpCall) readExpect(p *httpPayload) error {
	for i, status := range p.Expect {
		if status < 100 || status > 599 {
			return &task.FieldError{Field: fmt.Sprintf("payload.expect[%d]", i), Value: strconv.Itoa(status),
				Reason: "not an HTTP status", Hint: "100 to 599; leave expect out to accept any 2xx"}
		}
	}
	return nil
}

// httpCache keeps calls by their payload, because a schedule has the same payload each time. It is bounded: at the limit,
// it drops some other entry.
type httpCache struct {
	mu    sync.RWMutex
	calls map[string]*httpCall
}

const (
	httpCacheEntries = 256
	httpCachePayload = 4 << 10 // a longer payload is parsed each time
)

func (c *httpCache) get(payload []byte) *httpCall {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.calls[string(payload)]
}

func (c *httpCache) put(payload []byte, call *httpCall) {
	if len(payload) > httpCachePayload {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = make(map[string]*httpCall)
	}
	if len(c.calls) >= httpCacheEntries {
		for k := range c.calls { // the order of a map is random enough
			delete(c.calls, k)
			break
		}
	}
	c.calls[string(payload)] = call
}
