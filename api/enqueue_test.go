package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// allocated returns how many bytes f has allocated. The test must not be parallel.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A list of millions is refused before each of them has its place in memory.
func TestBatchOf_aListOfMillionsTakesLittleMemory(t *testing.T) {
	body := append([]byte(`{"tasks":[1`), bytes.Repeat([]byte(`,1`), 2<<20)...)
	body = append(body, `],"tasks":[{}]}`...)
	var is bool
	var err error
	took := allocated(func() { _, is, err = batchOf(body) })
	if p, _ := problemOf(err); !is || err == nil || len(p.Errors) != 1 || p.Errors[0].Pointer != "#/tasks" {
		t.Errorf("%v, %v", is, err)
	}
	if took > uint64(len(body)) {
		t.Errorf("a body of %d bytes took %d", len(body), took)
	}
}

type order struct{ Lines []string }

func (o order) Validate() error { _ = o.Lines[0]; return nil } // a bug: an order may have none

func TestEnqueue_refusesAPayloadWhoseCheckPanics(t *testing.T) {
	t.Parallel()
	mux := handlers.NewMux()
	if err := mux.Handle("order", handlers.Typed(func(context.Context, order) error { return nil })); err != nil {
		t.Fatal(err)
	}
	s := serve(t, Config{CheckPayload: func(x *task.Task) error { return mux.CheckPayload(x.Type, x.Payload) }})
	code, _, text := s.call(http.MethodPost, "/v1/tasks", `{"type":"order","payload":{}}`)
	if code != http.StatusBadRequest || !strings.Contains(text, `"field":"payload"`) || strings.Contains(text, "goroutine") || strings.Contains(text, ".go:") {
		t.Errorf("%d %s", code, text)
	}
}

func TestCheckQuery_namesNotEachOfVeryManyParameters(t *testing.T) {
	t.Parallel()
	var query strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&query, "x%d=&", i)
	}
	if n := len(fieldsOf(checkQuery(&huma.Operation{}, query.String()))); n != maxRefused {
		t.Errorf("%d fields", n)
	}
}

func TestEnqueue_refusesATaskThatIsTooLargeBeforeItReadsIt(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Limits: task.Limits{Payload: 1000}})
	twice := `{"type":"job","payload":{` + strings.Repeat(`"k":1,`, 20_000) + `"k":1}}` // nobody looks for what else is wrong with it
	long := `{"type":"job","payload":[` + strings.Repeat("1,", 40_000) + `1]}`
	for _, body := range []string{twice, `{"tasks":[{"type":"job"},` + twice + `]}`, `{"tasks":[{"type":"job"},` + long + `]}`} {
		if code, _, text := s.call(http.MethodPost, "/v1/tasks", body); code != 400 || !strings.Contains(text, "the limit is 1000") || strings.Contains(text, "twice") {
			t.Errorf("%d %s", code, text)
		}
	}
}

// A form shows all that is wrong at once.
func TestEnqueue_refusesEachFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	wrong := `{"type":"a b","queue":"","id":"a\u0007","priority":"urgent","timeout":"soon","unique_for":"1h","at":"tomorrow","max_attempts":0,"key_limit":-1}`
	for body, at := range map[string]string{wrong: "#/", `{"tasks":[{"type":"job"},` + wrong + `]}`: "#/tasks/1/"} {
		code, _, text := s.call(http.MethodPost, "/v1/tasks", body)
		var p Problem
		if err := json.Unmarshal([]byte(text), &p); err != nil || code != 400 {
			t.Fatalf("%d %s %v", code, text, err)
		}
		var got, want []string
		for _, f := range p.Errors {
			got = append(got, f.Pointer)
		}
		for _, name := range []string{"max_attempts", "queue", "priority", "timeout", "unique_for", "at", "type", "id", "key_limit"} {
			want = append(want, at+name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("it refuses %q, want %q", got, want)
		}
	}
}

// A fault that is found only when the tasks are added is told like a fault that is found before.
func TestEnqueue_ofABatchSaysWhichTaskIsRefused(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	whole := serveOn(t, rdb, Config{})
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: testredis.Namespace(t), Partitions: 6})
	if err != nil {
		t.Fatal(err)
	}
	parted, err := New(d.Admin(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(parted.Close)
	for _, c := range []struct {
		s     *Server
		bad   string
		field string
	}{
		{parted, `{"type":"job","id":"n2","key":"q2"}`, "id"},
		{parted, `{"type":"job","id":"n@2"}`, "id"},
		{whole.Server, `{"type":"job","unique":"n@2"}`, "unique"},
	} {
		s := &service{c.s, t, rdb, whole.ns}
		for body, at := range map[string]string{`{"tasks":[{"type":"job"},` + c.bad + `,{"type":"job"}]}`: "tasks[1].", `{"tasks":[` + c.bad + `]}`: "tasks[0]."} {
			code, _, text := s.call(http.MethodPost, "/v1/tasks", body)
			var p Problem
			if err := json.Unmarshal([]byte(text), &p); err != nil || code != 400 || len(p.Errors) != 1 {
				t.Fatalf("%d %s %v", code, text, err)
			}
			if f := p.Errors[0]; f.Field != at+c.field || f.Pointer != pointer(at+c.field) || !strings.HasPrefix(p.Detail, f.Field+" ") || strings.Contains(p.Detail, "answered for") {
				t.Errorf("%s: %s", body, text)
			}
		}
	}
	if list, err := d.Admin().Tasks.List(t.Context(), admin.TaskQuery{}); err != nil || len(list.Items) > 0 {
		t.Errorf("%v, %v", list.Items, err)
	}
}

func TestIdempotency_ofAViewerWritesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Tokens: func() []Token { return []Token{{Name: "eve", Role: Viewer, Secret: "secret-of-the-viewer"}} }})
	if code, _, text := s.call(http.MethodPost, "/v1/tasks", `{"type":"job"}`, "Authorization", "Bearer secret-of-the-viewer", "Idempotency-Key", "k"); code != 403 {
		t.Errorf("%d %s", code, text)
	}
	if keys := s.redis.Keys(t.Context(), s.key("*answer*")).Val(); len(keys) > 0 {
		t.Errorf("%v", keys)
	}
}
