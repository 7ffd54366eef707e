package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"
)

// answered is a reply, and when it was asked for and there.
type answered struct {
	status     int
	header     http.Header
	body       []byte
	began, end time.Time
}

// outages are the times when Redis was away.
type outages struct {
	mu   sync.Mutex
	list [][2]time.Time
}

// settle is how long after an outage the API may still say that Redis is away.
const settle = 5 * time.Second

func (o *outages) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, [2]time.Time{time.Now(), {}})
}

func (o *outages) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list[len(o.list)-1][1] = time.Now().Add(settle)
}

// met reports whether a request may have met an outage.
func (o *outages) met(a *answered) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, span := range o.list {
		if a.end.After(span[0]) && (span[1].IsZero() || a.began.Before(span[1])) {
			return true
		}
	}
	return false
}

// send sends a request, and reads the whole reply; of a stream, what comes in a moment.
func (f *fuzz) send(ctx context.Context, q *request) (*answered, error) {
	if q.stream {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
	}
	r, err := http.NewRequestWithContext(ctx, q.method, f.base, strings.NewReader(string(q.body)))
	if err != nil {
		return nil, err
	}
	r.URL = &url.URL{Scheme: "http", Host: r.URL.Host, Opaque: q.path, RawQuery: q.query}
	r.Header = q.header.Clone()
	if token := f.secrets[q.who]; token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	a := &answered{began: time.Now()}
	reply, err := f.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	a.status, a.header = reply.StatusCode, reply.Header
	if q.stream && a.status == http.StatusOK {
		a.body = make([]byte, 64)
		n, _ := reply.Body.Read(a.body)
		a.body, err = a.body[:n], nil
	} else {
		a.body, err = io.ReadAll(reply.Body)
	}
	a.end = time.Now()
	return a, err
}

// judge checks a reply against the document, and against what is known of the request.
func (f *fuzz) judge(q *request, a *answered) error {
	if a.header.Get("X-Content-Type-Options") != "nosniff" && a.status != http.StatusBadRequest {
		return errors.New("no nosniff")
	}
	for _, secret := range f.secrets {
		if secret != "" && strings.Contains(string(a.body), secret) {
			return errors.New("the reply has a token")
		}
	}
	switch {
	case q.method == http.MethodHead && (a.status < 500 || a.status == http.StatusServiceUnavailable && f.outages.met(a)):
		return nil // it has no body
	case a.status == http.StatusServiceUnavailable && f.outages.met(a):
		return wholeProblem(a.status, a.header, a.body)
	case a.status >= 500:
		return errors.New("a failure")
	}
	if _, err := url.PathUnescape(q.path); err != nil && a.status == http.StatusBadRequest {
		return nil // net/http itself refuses it
	}
	if err := f.judgeRole(q, a); err != nil {
		return err
	}
	switch {
	case q.broken != "" && a.status < 400:
		return errors.New("accepted nonsense")
	case a.status >= 300 && a.status < 400:
		return errors.New("sends elsewhere")
	case q.stream && a.status == http.StatusOK:
		return f.judgeStream(q, a)
	case q.op == nil && q.method == http.MethodOptions && a.status == http.StatusNoContent:
		return nil
	case a.status >= 400:
		if err := wholeProblem(a.status, a.header, a.body); err != nil {
			return err
		}
	}
	if q.op == nil || q.odd {
		return nil
	}
	return f.doc.conforms(q.op, a.status, a.header.Get("Content-Type"), a.body)
}

// judgeRole checks that a request did what its sender may do, and no more.
func (f *fuzz) judgeRole(q *request, a *answered) error {
	role, known := f.roles[q.who]
	switch {
	case !known && a.status != http.StatusUnauthorized:
		return errors.New("let in without a token")
	case known && a.status == http.StatusUnauthorized:
		return errors.New("kept out in spite of its token")
	case q.who == "narrow" && q.op != nil && q.op.ID == "enqueue" && a.status < 300:
		return onlyQueue("q1", q.body)
	case q.op == nil || q.odd || !known || role.May(q.op.Role):
		return nil
	case a.status < 400:
		return errors.New("did what it may not do")
	case len(q.header[keyHeader]) == 0 && a.status != http.StatusForbidden:
		return errors.New("told more than that it may not do this")
	}
	return nil
}

// onlyQueue checks that what was enqueued is of one queue.
func onlyQueue(name string, body []byte) error {
	type spec struct{ Queue string }
	var batch struct {
		spec
		Tasks []spec
	}
	if err := json.Unmarshal(body, &batch); err != nil {
		return err
	}
	if len(batch.Tasks) == 0 {
		batch.Tasks = []spec{batch.spec}
	}
	for _, t := range batch.Tasks {
		if t.Queue != name {
			return fmt.Errorf("enqueued into %q", t.Queue)
		}
	}
	return nil
}

func (f *fuzz) judgeStream(q *request, a *answered) error {
	kind := a.header.Get("Content-Type")
	if _, ok := q.op.Responses["200"].Content[kind]; !ok {
		return fmt.Errorf("the content type %q of 200 is not in the document", kind)
	}
	if !strings.HasPrefix(string(a.body), "retry: ") {
		return fmt.Errorf("the stream begins with %q", a.body)
	}
	return nil
}

// further checks what only more requests can tell.
func (f *fuzz) further(ctx context.Context, q *request, a *answered) error {
	if q.op == nil || q.odd || a.status >= 300 {
		return nil
	}
	if q.header.Get(keyHeader) != "" {
		if err := f.again(ctx, q, a); err != nil {
			return err
		}
	}
	if a.status == http.StatusCreated && (q.op.ID == "createSchedule" || q.op.ID == "enqueue") {
		return f.kept(ctx, q, a)
	}
	return nil
}

// again sends a request again, with its key: it must be answered as before. With another body it must be refused.
func (f *fuzz) again(ctx context.Context, q *request, a *answered) error {
	b, err := f.send(ctx, q)
	switch {
	case err != nil || f.outages.met(b):
		return nil
	case b.status != a.status || string(b.body) != string(a.body) || b.header.Get(replayedHeader) != "true":
		return fmt.Errorf("sent again with its key, answered %d %.300s", b.status, b.body)
	}
	other := *q
	other.body = append([]byte(" "), q.body...)
	other.header = q.header.Clone()
	other.header.Set("Content-Type", "application/json")
	if b, err = f.send(ctx, &other); err == nil && b.status != http.StatusUnprocessableEntity && !f.outages.met(b) {
		return fmt.Errorf("the key with another body: answered %d %.300s", b.status, b.body)
	}
	f.count("sent again", 0)
	return nil
}

// kept reads back what was made, and compares what was sent. It may be gone, or changed, by now.
func (f *fuzz) kept(ctx context.Context, q *request, a *answered) error {
	sent, made, now := map[string]any{}, map[string]any{}, map[string]any{}
	if a.header.Get("Location") == "" {
		return errors.New("no Location")
	}
	b, err := f.send(ctx, &request{method: "GET", path: a.header.Get("Location"), who: "admin", header: http.Header{}})
	if err != nil || f.outages.met(b) || b.status == http.StatusNotFound {
		return nil
	}
	if err := errors.Join(json.Unmarshal(q.body, &sent), json.Unmarshal(a.body, &made), json.Unmarshal(b.body, &now)); err != nil {
		return fmt.Errorf("%w: %d %s", err, b.status, b.body)
	}
	if q.op.ID == "createSchedule" && fmt.Sprint(now["revision"]) != "1" {
		return nil // somebody was faster
	}
	for _, name := range []string{"name", "id", "task", "type", "payload", "queue", "cron", "timezone", "missed", "overlap", "max_attempts", "max_runs", "key", "secret"} {
		was, ok := sent[name]
		if is, shown := now[name]; ok && !reflect.DeepEqual(was, is) && (shown || !isDefault(was)) {
			return fmt.Errorf("%s: sent %v, shown %v", name, was, is)
		}
	}
	f.count("read back", 0)
	return nil
}

// isDefault reports whether a value may be left out when it is shown.
func isDefault(v any) bool {
	switch v := v.(type) {
	case nil, bool:
		return true
	case string:
		return v == "" || v == "default" || v == "UTC" || v == "once" || v == "allow" || v == "normal"
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
