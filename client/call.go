package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/internal/wording"
)

// Bounds of one call.
const (
	maxReply = 64 << 20               // bytes
	tries    = 3                      // while the connection breaks, or the API asks to slow down
	pause    = 100 * time.Millisecond // after the first try; it doubles
	maxPause = 5 * time.Second        // longer pauses that the API asks for are left to the caller
)

// conn is the way to an API.
type conn struct {
	base    string
	token   func() (string, error)
	timeout time.Duration
	http    *http.Client
}

// call is one request.
type call struct {
	method, path string
	query        url.Values
	header       http.Header
	body         any // nil: none
}

// place writes a path with what its %s stand for.
func place(format string, names ...string) string {
	args := make([]any, len(names))
	for i, name := range names {
		args[i] = url.PathEscape(name)
	}
	return fmt.Sprintf(format, args...)
}

func (c *conn) get(ctx context.Context, path string, query url.Values, out any) error {
	return c.do(ctx, &call{method: http.MethodGet, path: path, query: query}, out)
}

func (c *conn) post(ctx context.Context, path string, body, out any) error {
	return c.do(ctx, &call{method: http.MethodPost, path: path, body: body}, out)
}

// do makes a call and reads the reply into out. A call whose connection breaks is made again if that does no harm: a GET, or
// a POST, whose key makes the API do it once; another call only if it was not sent.
func (c *conn) do(ctx context.Context, x *call, out any) error {
	var body []byte
	if x.body != nil {
		var err error
		if body, err = json.Marshal(x.body); err != nil {
			return fmt.Errorf("write the request: %w", err)
		}
	}
	header := http.Header{"Accept": {"application/json"}}
	for name, values := range x.header {
		header[name] = values
	}
	if body != nil {
		header.Set("Content-Type", "application/json")
	}
	if x.method == http.MethodPost {
		header.Set("Idempotency-Key", rand.Text())
	}
	lost := time.Now()
	for try := 1; ; try++ {
		err := c.once(ctx, x, header, body, out)
		wait, again := repeatable(x.method, err, try)
		if errors.As(err, new(*brokenError)) {
			lost = time.Now()
		}
		if errors.As(err, new(*runningError)) && time.Since(lost) < c.timeout { // the API still works on the try that was lost
			wait, again, try = maxPause/10, true, 1
		}
		if !again || try == tries {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// repeatable reports whether a call may be made again, and after which time.
func repeatable(method string, err error, try int) (time.Duration, bool) {
	var broken *brokenError
	var limited *limitedError
	switch {
	case errors.As(err, &limited):
		return limited.wait, limited.wait <= maxPause
	case errors.As(err, &broken):
		return pause << (2 * (try - 1)), method == http.MethodGet || method == http.MethodPost || notSent(err)
	}
	return 0, false
}

func notSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// once makes a call a single time.
func (c *conn) once(ctx context.Context, x *call, header http.Header, body []byte, out any) error {
	timed, stop := context.WithTimeout(ctx, c.timeout)
	defer stop()
	resp, err := c.send(timed, x, header, body)
	if err != nil {
		return c.broken(ctx, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	switch {
	case err != nil:
		return c.broken(ctx, err)
	case len(text) > maxReply:
		return c.strange(fmt.Sprintf("answers with more than %d bytes", maxReply))
	case resp.StatusCode >= 300:
		return c.refused(resp, text)
	case resp.StatusCode == http.StatusNoContent || out == nil:
		return nil
	case mediaOf(resp) != "application/json":
		return c.strange("answers with " + kindOf(resp))
	}
	if err := json.Unmarshal(text, out); err != nil {
		return c.strange("answers with what is not the JSON of this call: " + err.Error())
	}
	return nil
}

// send sends a request, and returns the reply as soon as it begins.
func (c *conn) send(ctx context.Context, x *call, header http.Header, body []byte) (*http.Response, error) {
	target := c.base + "/v1" + x.path
	if len(x.query) > 0 {
		target += "?" + x.query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, x.method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	if c.token != nil {
		token, err := c.token()
		if err != nil {
			return nil, &tokenError{err}
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
	}
	return c.http.Do(r)
}

func mediaOf(resp *http.Response) string {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

// kindOf names the type of a reply, which some other server may have sent.
func kindOf(resp *http.Response) string {
	if kind := mediaOf(resp); kind != "" {
		return wording.Cut(kind, 60) + " (status " + strconv.Itoa(resp.StatusCode) + ")"
	}
	return "status " + strconv.Itoa(resp.StatusCode)
}
