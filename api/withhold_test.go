package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// card is the value that is secret in the tests.
const card = "4111-1111-1111-1111"

// secretly serves a namespace in which the cards of the type pay are secret, for the three roles. It logs into the buffer.
func secretly(t *testing.T, c onbeat.Config) (*service, *bytes.Buffer) {
	t.Helper()
	rdb := testredis.Client(t)
	c.Namespace, c.Secret = testredis.Namespace(t), map[string][]string{"pay": {"card"}}
	d, err := onbeat.New(rdb, c)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s, err := New(d.Admin(), Config{
		Tokens: func() []Token {
			return []Token{{Name: "v", Role: Viewer, Secret: viewer}, {Name: "o", Role: Operator, Secret: operator}, {Name: "a", Role: Admin, Secret: admins}}
		},
		CheckPayload: func(x *task.Task) error {
			if !bytes.Contains(x.Payload, []byte("refuse")) {
				return nil
			}
			marked := *x
			marked.Secret = secret.Join(x.Secret, c.Secret[x.Type])
			return handlers.Hide(&marked, errors.Join(
				&task.FieldError{Field: "payload.note", Value: "refuse", Reason: "no"},
				&task.FieldError{Field: "payload.card", Value: card, Reason: "no card: " + card},
			))
		},
		Log: zerolog.New(&log).Level(zerolog.DebugLevel),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &service{s, t, rdb, c.Namespace}, &log
}

// as sends a request as the holder of a token.
func (s *service) as(token, method, path, body string, more ...string) (int, string) {
	s.t.Helper()
	code, _, text := s.call(method, path, body, append(more, "Authorization", "Bearer "+token)...)
	return code, text
}

// told makes a schedule, changes it, deletes another, and adds tasks, each with a card.
func (s *service) told() {
	s.t.Helper()
	for _, x := range []exchange{
		{"POST", "/v1/schedules", `{"name":"s","every":"1h","task":"pay","payload":{"card":"0-` + card + `","n":1}}`, 201},
		{"PUT", "/v1/schedules/s", `{"every":"1h","task":"pay","payload":{"card":"` + card + `","n":2}}`, 200},
		{"PUT", "/v1/schedules/s", `{"every":"1h","task":"echo","payload":{"card":"1-` + card + `","n":2},"secret":["card"]}`, 200},
		{"PUT", "/v1/schedules/s", `{"every":"1h","task":"echo","payload":{"n":2}}`, 200},
		{"PUT", "/v1/schedules/s", `{"every":"1h","task":"pay","payload":["` + card + `"],"secret":["*"]}`, 200},
		{"POST", "/v1/schedules", `{"name":"gone","every":"1h","task":"pay","payload":{"card":"` + card + `"}}`, 201},
		{"DELETE", "/v1/schedules/gone", "", 200},
		{"POST", "/v1/tasks", `{"id":"t","type":"pay","in":"1h","payload":{"card":"` + card + `"}}`, 201},
		{"POST", "/v1/tasks", `{"id":"own","type":"echo","in":"1h","payload":{"x":{"y":"` + card + `"}},"secret":["x"]}`, 201},
		{"POST", "/v1/schedules/s/trigger", ``, 201},
	} {
		if code, text := s.as(admins, x.method, x.path, x.body); code != x.want {
			s.t.Fatalf("%s %s: %d %s", x.method, x.path, code, text)
		}
	}
}

// shows reports whether a schema, or one that it refers to, has a property of one of the names.
func (s *service) shows(schema *huma.Schema, seen map[string]bool, names ...string) bool {
	switch {
	case schema == nil || seen[schema.Ref]:
		return false
	case schema.Ref != "":
		seen[schema.Ref] = true
		return s.shows(s.huma.OpenAPI().Components.Schemas.SchemaFromRef(schema.Ref), seen, names...)
	}
	for _, name := range names {
		if schema.Properties[name] != nil {
			return true
		}
	}
	inner := append([]*huma.Schema{schema.Items}, schema.OneOf...)
	inner = append(append(inner, schema.AllOf...), schema.AnyOf...)
	for _, p := range schema.Properties {
		inner = append(inner, p)
	}
	for _, p := range inner {
		if s.shows(p, seen, names...) {
			return true
		}
	}
	return false
}

// A viewer asks for all there is. Each reply that may have a payload in it, by the document, has one here, and no card.
func TestWithhold_aViewerSeesNoSecretOfAPayload(t *testing.T) {
	t.Parallel()
	s, log := secretly(t, onbeat.Config{})
	s.told()
	queries := map[string][]string{
		"/v1/schedules": {"", "?deleted=true"}, "/v1/tasks": {"?type=pay", "?type=echo", "?schedule=s"}, "/v1/events": {"?after=0", ""},
		"/v1/preview": {"?every=1h"}, "/v1/tasks/{id}": {"", "own"}, "/v1/schedules/{name}": {"", "gone"},
	}
	masked := 0
	s.operations(func(method, path string, op *huma.Operation) {
		if op.Extensions["x-onbeat-role"] != string(Viewer) {
			return
		}
		mayShow := s.shows(op.Responses["200"].Content["application/json"].Schema, map[string]bool{}, "payload", "changes", "definition")
		list := queries[path]
		if list == nil {
			list = []string{""}
		}
		for _, q := range list {
			url := path + q
			if !strings.HasPrefix(q, "?") { // another schedule, or another task
				name, id := "s", "t"
				if q != "" {
					name, id = q, q
				}
				url = strings.NewReplacer("{name}", name, "{id}", id).Replace(path)
			}
			code, text := s.as(viewer, method, url, "")
			if strings.Contains(text, "1111-1111") || code == 200 && mayShow && !strings.Contains(text, secret.Masked) {
				t.Errorf("%s %s: a viewer gets %d %s", method, url, code, text)
			}
			whole, admins := s.as(admins, method, url, "")
			if whole != code || mayShow && code == 200 && !strings.Contains(admins, card) {
				t.Errorf("%s %s shows an admin no card, so that it proves nothing: %d %s", method, url, whole, admins)
			}
			if mayShow && code == 200 {
				masked++
			}
		}
	})
	if masked < 9 {
		t.Errorf("only %d replies had a payload", masked)
	}
	if text := s.streamed1(viewer); strings.Contains(text, "1111-1111") || !strings.Contains(text, "schedule changed") || !strings.Contains(text, "payload.card") {
		t.Errorf("the stream: %s", text)
	}
	for _, token := range []string{viewer, operator, admins} {
		if strings.Contains(log.String(), token) || strings.Contains(log.String(), "1111-1111") {
			t.Errorf("logged: %s", log)
		}
	}
}

// streamed1 returns what the stream sends of all events within a moment.
func (s *service) streamed1(token string) string {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/events", http.NoBody)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Last-Event-ID", "0")
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Body.String()
}

// A sender of a secret value is not shown it again when it is refused: replies are logged on the way.
func TestProblems_showNothingThatIsSecret(t *testing.T) {
	t.Parallel()
	s, log := secretly(t, onbeat.Config{})
	one := `{"type":"pay","payload":{"card":"` + card + `","note":"refuse"}}`
	for _, body := range []string{one, `{"tasks":[{"type":"echo"},` + one + `]}`, `{"type":"echo","payload":{"card":"` + card + `","note":"refuse"},"secret":["card"]}`} {
		code, text := s.as(operator, "POST", "/v1/tasks", body, keyHeader, "k")
		if code != 400 || strings.Contains(text, "1111-1111") || !strings.Contains(text, `"value":"***"`) || !strings.Contains(text, "no card: ***") || !strings.Contains(text, "payload.note") {
			t.Errorf("%d %s", code, text)
		}
	}
	if strings.Contains(log.String(), "1111-1111") {
		t.Error(log.String())
	}
}

// An answer is kept as its reply was: it is encrypted like the payload in it, and only a sender that may see that payload gets it again.
func TestIdempotency_keepsPayloadsEncrypted(t *testing.T) {
	t.Parallel()
	role := Admin
	key := task.EncryptionKey{ID: "k", Secret: bytes.Repeat([]byte("k"), task.EncryptionKeyBytes)}
	s, _ := secretly(t, onbeat.Config{Encryption: task.Encryption{Keys: []task.EncryptionKey{key}}})
	tokens := func() []Token { return []Token{{Name: "ann", Role: role, Secret: admins}} }
	s.handler = guard(&Config{Tokens: tokens}, remember(s.admin.Answers, s.mux))
	s.told()
	send := func() (int, string) { return s.as(admins, "POST", "/v1/schedules/gone/restore", "", keyHeader, "k") }
	code, first := send()
	if code != 200 || !strings.Contains(first, card) {
		t.Fatalf("%d %s", code, first)
	}
	if code, again := send(); code != 200 || again != first {
		t.Errorf("again: %d %s", code, again)
	}
	answers := s.redis.HGetAll(t.Context(), s.key("answers")).Val()
	if len(answers) == 0 {
		t.Fatal("no answer is kept")
	}
	for id, record := range answers {
		if strings.Contains(record, "1111-1111") || id != "" && !strings.Contains(record, " k \x00") {
			t.Errorf("Redis keeps %q", record)
		}
	}
	role = Viewer
	if code, text := send(); code != 403 || strings.Contains(text, "1111-1111") {
		t.Errorf("a viewer: %d %s", code, text)
	}
	role = Admin
	other, err := onbeat.New(s.redis, onbeat.Config{Namespace: s.ns})
	if err != nil {
		t.Fatal(err)
	}
	s.handler = guard(&Config{Tokens: tokens}, remember(other.Admin().Answers, s.mux))
	if code, text := send(); code != 409 || !strings.Contains(text, "problem:no-key") {
		t.Errorf("without the key: %d %s", code, text)
	}
}
