package handlers

import (
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/onbeat/onbeat/task"
)

// freshFor is for how long an idle connection is used again for a request that may be sent only once. No common server closes one
// that soon, so that the request does not meet the end of its connection.
const freshFor = time.Second

// newDialer returns a dialer whose connections notice within a minute that the other end has vanished without a word. The probes
// also keep a connection in the tables of the firewalls and NATs on its way.
func newDialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         10 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3},
	}
}

func newTransport(cfg HTTPConfig, idle time.Duration, dialer *net.Dialer, proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        cfg.TLS.Clone(),
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           4 * cfg.IdlePerHost,
		MaxIdleConnsPerHost:    cfg.IdlePerHost,
		IdleConnTimeout:        idle,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // the answer is thrown away
	}
}

// repeatable reports whether net/http may send the request again if its connection was closed before a byte of an answer came.
func (c *httpCall) repeatable(t *task.Task) bool {
	if c.method == http.MethodGet || c.method == http.MethodHead || c.method == http.MethodOptions {
		return true
	}
	_, own := c.header[headerIdempotency]
	return own || t.AttemptsAllowed() > 1
}
