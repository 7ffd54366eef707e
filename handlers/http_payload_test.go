package handlers_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

func TestHTTP_refusesAPayload(t *testing.T) {
	t.Parallel()
	h := newHTTP(t, handlers.HTTPConfig{})
	for field, with := range map[string][]string{
		"payload": {``, `"http://a.example"`, `{"url":"http://a.example"} {}`},
		"payload.url": {`{}`, `{"url":""}`, `{"url":null}`, `{"url":5}`, `{"url":"shop.example/warm"}`, `{"url":"//shop.example"}`, `{"url":"localhost:8080/a"}`,
			`{"url":"u:secret@shop.example"}`, `{"url":"ftp://u:secret@shop.example"}`, `{"url":"http:shop.example"}`, `{"url":"http://:80/a"}`, `{"url":"http://a:0/"}`,
			`{"url":"http://a:65536/"}`, `{"url":"http://a:/"}`, `{"url":"http://u:se/cret@a"}`, `{"url":"http://a/\n"}`},
		"payload.method": {`"post"`, `"CONNECT"`, `"TRACE"`, `"GE T"`, `"` + strings.Repeat("A", 33) + `"`},
		"payload.headers": {`{"a b":""}`, `{"Authorization: Bearer secret":"x"}`, `{"":""}`, `{"é":""}`, `{"a":"secret\r\nb: c"}`, `{"a":5}`, `[]`,
			`{"ONBEAT-task-id":"x"}`, `{"onbeat-anything":"x"}`, `{"traceParent":"x"}`, `{"Onbeat_Fence":"x"}`, `{"onbeat.task~id":"x"}`,
			`{"content_length":"5"}`, `{"TRANSFER.encoding":"x"}`, `{"host":"a/b"}`, `{"host":""}`, `{"X-A":"1","x-a":"2"}`, `{"Host":"a","host":"b"}`},
		"payload.timeout":   {`"5"`, `"0s"`, `"-1s"`, `5`},
		"payload.expect[1]": {`[200,99]`},
		"payload.expect":    {`200`, `["200"]`},
		"payload.headder":   {`{}`},
	} {
		for _, p := range with {
			if name, ok := strings.CutPrefix(field, "payload."); ok && name != "url" {
				name, _, _ = strings.Cut(name, "[")
				p = `{"url":"http://a.example","` + name + `":` + p + `}`
			}
			err := h.(handlers.PayloadChecker).CheckPayload([]byte(p))
			if e, ok := errors.AsType[*task.FieldError](err); !ok || e.Field != field || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, want %s refused", p, err, field)
			}
			if err := h.Handle(t.Context(), &task.Task{Payload: []byte(p)}); handlers.IsDead(err) == errors.Is(err, handlers.ErrUnknownField) {
				t.Errorf("%s: the run ends with %v, want it dead unless a newer release may read it", p, err)
			}
		}
	}
	if n := handlers.CachedHTTP(h); n != 0 {
		t.Errorf("%d bad payloads are kept", n)
	}
}

func TestHTTP_acceptsAPayload(t *testing.T) {
	t.Parallel()
	h := newHTTP(t, handlers.HTTPConfig{}).(handlers.PayloadChecker)
	for _, p := range []string{
		`{"method":"POST","url":"https://shop.example/warm","headers":{},"body":"","timeout":"5s","expect":[200,204]}`,
		`{"url":"HTTP://u:p@[::1]:65535/?a=b#c"}`,
		`{"url":"http://한국.example/é","method":"M-SEARCH","timeout":"1ns","expect":[100,599]}`,
		`{"url":"http://한국.example/é","method":"M-SEARCH","timeout":"1.5d","expect":[100,599]}`,
		`{"url":"http://a","headers":null,"body":null,"method":null,"timeout":null,"expect":null}`,
		`{"url":"http://a","headers":{"X_a.b~":"tab\tand é","Host":"b:1","User-Agent":"me"}}`,
	} {
		if err := h.CheckPayload([]byte(p)); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// An empty header of a payload takes twenty times its bytes, so a payload has few, and more are refused before they are made.
func TestHTTP_refusesAFloodOfHeaders(t *testing.T) {
	h := newHTTP(t, handlers.HTTPConfig{}).(handlers.PayloadChecker)
	payload := func(n int) []byte {
		var b strings.Builder
		b.WriteString(`{"url":"http://a.example","headers":{`)
		for i := range n {
			fmt.Fprintf(&b, `%s"h%d":""`, strings.Repeat(",", min(i, 1)), i)
		}
		return []byte(b.String() + "}}")
	}
	if err := h.CheckPayload(payload(1000)); err != nil {
		t.Errorf("1,000 headers: %v", err)
	}
	for _, n := range []int{1001, 90_000} {
		p := payload(n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := h.CheckPayload(p)
		runtime.ReadMemStats(&after)
		if e, ok := errors.AsType[*task.FieldError](err); !ok || e.Field != "payload.headers" {
			t.Errorf("%d headers: %v", n, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; n > 1001 && took > 12*uint64(len(p)) {
			t.Errorf("%d headers of %d bytes took %d", n, len(p), took)
		}
	}
}

func FuzzHTTPPayload(f *testing.F) {
	for _, p := range []string{
		`{"url":"http://a.example/b?c=d","headers":{"A":"b"},"body":{"a":1},"timeout":"5s","expect":[200],"method":"GET"}`,
		`{"url":"http://user:secret@a.example"}`, `{"url":"http://user:se/cret@a"}`, `{"url":"u:secret@b"}`, `{"body":"\u0000"}`, `[]`, ``,
		`{"url":"http://a","headers":{"a":"secret\n"}}`,
	} {
		f.Add([]byte(p))
	}
	h := handlers.HTTP(handlers.HTTPConfig{})
	f.Cleanup(func() { _ = h.(io.Closer).Close() })
	f.Fuzz(func(t *testing.T, payload []byte) {
		err := h.(handlers.PayloadChecker).CheckPayload(payload)
		if err == nil {
			return
		}
		fe, ok := errors.AsType[*task.FieldError](err)
		if !ok || !strings.HasPrefix(fe.Field, "payload") || fe.Reason == "" {
			t.Fatalf("%q: %v names no field", payload, err)
		}
		if strings.ContainsAny(err.Error(), "\r\n\x00") {
			t.Fatalf("%q: %q is not one line", payload, err)
		}
	})
}
