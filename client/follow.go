package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/task"
)

// Bounds of a stream. The API gives a sign of life every 15 seconds.
const (
	maxLine   = 1 << 20 // bytes
	silence   = 45 * time.Second
	reconnect = 500 * time.Millisecond
)

// Follow goes on behind the last event when a stream ends. It returns an error if the API does not take it up again.
func (a *activity) Follow(ctx context.Context, after string, fn func(admin.Event) error) error {
	for {
		if err := a.stream(ctx, &after, fn); err != nil {
			return err
		}
		select {
		case <-time.After(reconnect):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// stream calls fn with the events of one stream behind a cursor, which it moves. It returns nil when the stream has begun and ended.
func (a *activity) stream(ctx context.Context, after *string, fn func(admin.Event) error) error {
	living, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watch := time.AfterFunc(silence, func() { stop(errSilent) })
	defer watch.Stop()
	header := http.Header{"Accept": {"text/event-stream"}, "Cache-Control": {"no-cache"}}
	if *after != "" {
		header.Set("Last-Event-ID", *after)
	}
	resp, err := a.c.send(living, &call{method: http.MethodGet, path: "/events"}, header, nil)
	if err != nil {
		return a.c.broken(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
		if err != nil {
			return a.c.broken(ctx, err)
		}
		return a.c.refused(resp, text)
	}
	if mediaOf(resp) != "text/event-stream" {
		return a.c.strange("answers with " + kindOf(resp) + " and not with a stream of events")
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	var data strings.Builder
	cursor := *after
	for lines.Scan() {
		watch.Reset(silence)
		line := lines.Text()
		if text, ok := strings.CutPrefix(line, "data:"); ok && data.Len() < maxLine {
			data.WriteString(strings.TrimPrefix(text, " ") + "\n")
			continue
		}
		if text, ok := strings.CutPrefix(line, "id:"); ok {
			cursor = strings.TrimPrefix(text, " ")
			continue
		}
		if line != "" {
			continue // a comment, which is a sign of life, or a field that is not used here
		}
		if *after = cursor; data.Len() == 0 {
			continue
		}
		var e admin.Event
		if err := json.Unmarshal([]byte(data.String()), &e); err != nil || e.ID == "" {
			return a.c.strange("sends what is no event")
		}
		data.Reset()
		e.Cursor = cursor
		if err := fn(e); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

var errSilent = fmt.Errorf("%w: the stream of events fell silent", task.ErrUnreachable)
