// Package otlp sends spans to a collector: OTLP over HTTP, as protobuf.
//
// The exporter of OpenTelemetry does the same, and links gRPC to do it.
package otlp

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	firstWait  = 5 * time.Second
	longest    = 30 * time.Second
	mostTrying = time.Minute
	maxAnswer  = 64 << 10
)

var errStopped = errors.New("the exporter has stopped")

// Client is an otlptrace.Client, safe for concurrent use. It sends a batch again for up to a minute while the collector is busy.
type Client struct {
	cfg  settings
	http *http.Client
	wait time.Duration   // before a batch is sent again
	life context.Context // ends with Stop
	end  context.CancelFunc
}

// New returns a client that is set by the variables OTEL_EXPORTER_OTLP_*. Its error names the variable.
func New(env func(string) string) (*Client, error) {
	cfg, err := read(env)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if cfg.tls != nil {
		transport.TLSClientConfig = cfg.tls
	}
	c := &Client{cfg: cfg, http: &http.Client{Transport: transport, Timeout: cfg.timeout}, wait: firstWait}
	c.life, c.end = context.WithCancel(context.Background())
	return c, nil
}

// Start implements otlptrace.Client. There is nothing to start.
func (c *Client) Start(ctx context.Context) error { return ctx.Err() }

// Stop ends a send that is under way.
func (c *Client) Stop(ctx context.Context) error {
	c.end()
	c.http.CloseIdleConnections()
	return ctx.Err()
}

// UploadTraces implements otlptrace.Client. An error means that spans are lost.
func (c *Client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := c.body(spans)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(errStopped) })()

	began, wait := time.Now(), c.wait
	for {
		err := c.send(ctx, body)
		var busy *busyError
		if !errors.As(err, &busy) {
			return err
		}
		pause := max(busy.after, wait/2+rand.N(wait))
		if time.Since(began)+pause > mostTrying {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(pause):
		}
		wait = min(wait*3/2, longest)
	}
}

// body is the request: TracesData has the same bytes as ExportTraceServiceRequest, whose package links gRPC.
func (c *Client) body(spans []*tracepb.ResourceSpans) ([]byte, error) {
	raw, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil || !c.cfg.gzip {
		return raw, err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(raw); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// busyError is of a request that may succeed later.
type busyError struct {
	error
	after time.Duration
}

func (e *busyError) Unwrap() error { return e.error }

func (c *Client) send(ctx context.Context, body []byte) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header = c.cfg.header.Clone()
	resp, err := c.http.Do(q)
	var failed *url.Error
	if errors.As(err, &failed) && failed.Temporary() {
		return &busyError{error: err}
	}
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &busyError{c.refused(resp.Status, answer), retryAfter(resp.Header.Get("Retry-After"))}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return c.refused(resp.Status, answer)
	}
	if err != nil || resp.Header.Get("Content-Type") != contentType {
		return err
	}
	return partial(answer)
}

func (c *Client) refused(status string, answer []byte) error {
	return fmt.Errorf("%s answered %s: %s", c.cfg.url, status, cmp.Or(string(bytes.TrimSpace(answer)), "(empty)"))
}

func retryAfter(v string) time.Duration {
	if n, err := strconv.ParseInt(v, 10, 32); err == nil {
		return time.Duration(n) * time.Second
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	return time.Until(at)
}

// partial returns an error if the collector did not take all spans. The answer is an ExportTraceServiceResponse.
func partial(answer []byte) error {
	var rejected uint64
	var message string
	err := fields(answer, func(n protowire.Number, v []byte, _ uint64) error {
		if n != 1 {
			return nil
		}
		return fields(v, func(n protowire.Number, v []byte, i uint64) error {
			switch n {
			case 1:
				rejected = i
			case 2:
				message = string(v)
			}
			return nil
		})
	})
	if err != nil || rejected == 0 && message == "" {
		return err
	}
	return fmt.Errorf("the collector rejected %d spans: %s", rejected, message)
}

// fields calls f with each field of a message: the bytes of one that has bytes, the number of one that is a number.
func fields(b []byte, f func(protowire.Number, []byte, uint64) error) error {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		var v []byte
		var i uint64
		switch kind {
		case protowire.BytesType:
			v, size = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			i, size = protowire.ConsumeVarint(b)
		default:
			size = protowire.ConsumeFieldValue(n, kind, b)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		if err := f(n, v, i); err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}
