package client

import (
	"cmp"
	"crypto/tls"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/task"
)

// Options tune a client. The zero value sends no token.
type Options struct {
	// Token returns the token to send with a request, or "". It is called for each, so a token may be replaced.
	Token func() (string, error)
	// PlainHTTP lets a token be sent over http:// to another machine. Otherwise [New] refuses that: anybody on the way
	// could read it.
	PlainHTTP bool
	// TLS is for https://: the authorities to trust, and the certificate of this client. Nil: those of the system, and none.
	TLS *tls.Config
	// HTTP sends the requests; then TLS is not used. Its redirects and timeout do not count. Default: a client of its own.
	HTTP *http.Client
	// Timeout is the longest time for one try of one call, other than Follow. Default 1m.
	Timeout time.Duration
}

// New returns the admin of the namespace that the API at a URL serves, such as http://127.0.0.1:8080. It does not connect
// yet. Changes are made in the name of the token: [admin.By] has no effect.
func New(base string, o Options) (*admin.Admin, error) {
	u, err := parse(base)
	if err != nil {
		return nil, err
	}
	if o.Token != nil && u.Scheme == "http" && !o.PlainHTTP && !isLoopback(u.Hostname()) {
		return nil, &task.FieldError{
			Field: "api", Value: u.Redacted(), Reason: "whoever is on the way could read the token", Hint: "use https://, or a tunnel to this machine",
		}
	}
	c := &conn{base: strings.TrimSuffix(u.String(), "/"), token: o.Token, timeout: cmp.Or(o.Timeout, time.Minute)}
	c.http = clientOf(&o)
	return &admin.Admin{Tasks: &tasks{c}, Schedules: &schedules{c}, Instances: &instances{c}, Activity: &activity{c}, Bulks: &bulks{c}}, nil
}

// parse reads the URL of an API. A path before /v1 is that of a proxy.
func parse(base string) (*url.URL, error) {
	refuse := func(value, reason string) error {
		return &task.FieldError{Field: "api", Value: value, Reason: reason, Hint: "for example http://127.0.0.1:8080 or https://onbeat.example.com"}
	}
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return nil, refuse("", "not a URL") // it may have a password in it
	case u.User != nil:
		return nil, refuse("", "a user or password in the URL is not sent; the API takes a token")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, refuse(base, "neither http:// nor https://")
	case u.Hostname() == "":
		return nil, refuse(base, "names no host")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, refuse("", "the URL ends after the path")
	}
	return u, nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// clientOf returns what sends the requests. It follows no redirect, because the token is not for where that leads.
func clientOf(o *Options) *http.Client {
	h := http.Client{}
	if o.HTTP != nil {
		h = *o.HTTP
	} else {
		h.Transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: o.TLS, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		}
	}
	h.Timeout = 0
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &h
}
