package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/sign"
	"github.com/onbeat/onbeat/task"
)

// sender sends messages to one target, by a handler of http of its own.
type sender struct {
	Target
	host    string
	http    handlers.TaskHandler
	secrets *secret.Set // of what no error may show
}

func newSender(t Target) (*sender, error) {
	t = t.withDefaults()
	s := &sender{Target: t}
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, t.CheckURL()
	}
	s.host = u.Hostname()
	s.secrets = &secret.Set{}
	s.secrets.Add(t.URL)
	s.http = handlers.HTTP(handlers.HTTPConfig{
		DenyPrivate: t.DenyPrivate, Timeout: t.Timeout, MaxRedirects: -1, IdlePerHost: 2, IdleTimeout: time.Minute, TLS: t.TLS,
	})
	return s, nil
}

func (s *sender) close() {
	if c, ok := s.http.(io.Closer); ok {
		_ = c.Close()
	}
}

// send makes the request of a message. No error shows the URL.
func (s *sender) send(ctx context.Context, t *task.Task, m *Message) error {
	body, err := s.render(m)
	if err != nil {
		return handlers.Dead(fmt.Errorf("target %q: %w", s.Name, err))
	}
	call := *t
	call.Payload, call.Sealed, call.Secret = s.request(t.ID, body, time.Now()), nil, nil
	// The answer is no output of the run, which an archive would keep: it may repeat the URL.
	if err := s.http.Handle(handlers.KeepOutput(ctx, 0), &call); err != nil {
		return &sendError{fmt.Sprintf("target %q", s.Name), s.host, field.Veil(s.secrets, err)}
	}
	return nil
}

// request is the payload of http for a body. It is made for each attempt, because the timestamp is signed too.
func (s *sender) request(id, body string, now time.Time) []byte {
	contentType := "application/json"
	if s.Kind == Template {
		contentType = s.ContentType
	}
	headers := map[string]string{"Content-Type": contentType, sign.HeaderID: id, sign.HeaderTimestamp: strconv.FormatInt(now.Unix(), 10)}
	if len(s.Key) > 0 {
		headers[sign.HeaderSignature] = sign.Of(s.Key, id, headers[sign.HeaderTimestamp], body)
	}
	b, _ := json.Marshal(map[string]any{"url": s.URL, "headers": headers, "body": literal(body)}) // texts always encode
	return b
}

// reference is what http would take for a variable of the environment.
var reference = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

// literal is a body that http sends as it is. An error that a message shows may have ${NAME} in it.
func literal(body string) string {
	return reference.ReplaceAllStringFunc(body, func(match string) string { return "$" + match })
}

// sendError says to what something could not be sent. It unwraps to the error of http, so that a delay that the receiver asks
// for, and an address that is not allowed, count.
type sendError struct {
	to, host string
	err      error
}

func (e *sendError) Error() string {
	return fmt.Sprintf("%s at %s: %v", e.to, e.host, e.err)
}
func (e *sendError) Unwrap() error { return e.err }

// Send sends a message to a target from this process, once, and returns what went wrong. It is for trying a target out.
func Send(ctx context.Context, t Target, m *Message) error {
	if err := t.Validate(); err != nil {
		return err
	}
	s, err := newSender(t)
	if err != nil {
		return err
	}
	defer s.close()
	return s.send(ctx, &task.Task{ID: Type + ":" + t.Name + ":" + task.NewID(time.Now()), Type: Type, Attempt: 1, MaxAttempts: 1, Claimed: time.Now()}, m)
}
