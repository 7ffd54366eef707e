package handlers_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

func TestHTTP_refusesAPayload(t *testing.T) {
	t.Parallel()
	h := newHTTP(t, handlers.HTTPConfig{})
	const (
		urlHint = " (an absolute URL such as https://shop.example/warm)"
		methods = " (POST (the default), GET, PUT, PATCH, DELETE, HEAD)"
		ok      = `"url":"http://a.example"`
	)
	for p, want := range map[string]string{
		``:                                 "payload: missing (pass a JSON value with the fields of the handler)",
		`{}`:                               "payload.url: missing" + urlHint,
		`{"url":""}`:                       "payload.url: missing" + urlHint,
		`{"url":null}`:                     "payload.url: missing" + urlHint,
		`{"url":5}`:                        "payload.url: want string, got a JSON number (pass a JSON value with the fields of the handler)",
		`{"url":"shop.example/warm"}`:      `payload.url "shop.example/warm": has no scheme` + urlHint,
		`{"url":"/warm"}`:                  `payload.url "/warm": has no scheme` + urlHint,
		`{"url":"//shop.example"}`:         `payload.url "//shop.example": has no scheme` + urlHint,
		`{"url":"ftp://u:p@shop.example"}`: `payload.url "ftp://shop.example": its scheme is not http or https` + urlHint,
		`{"url":"localhost:8080/a"}`:       `payload.url "localhost:8080/a": its scheme is not http or https` + urlHint,
		`{"url":"u:p@shop.example"}`:       `payload.url: its scheme is not http or https` + urlHint,
		`{"url":"http:shop.example"}`:      `payload.url "http:shop.example": has no host` + urlHint,
		`{"url":"http://"}`:                `payload.url "http:": has no host` + urlHint,
		`{"url":"http://:80/a"}`:           `payload.url "http://:80/a": has no host` + urlHint,
		`{"url":"http://a:0/"}`:            `payload.url "http://a:0/": has an invalid port` + urlHint,
		`{"url":"http://a:65536/"}`:        `payload.url "http://a:65536/": has an invalid port` + urlHint,
		`{"url":"http://a:/"}`:             `payload.url "http://a:/": has an invalid port` + urlHint,
		`{"url":"http://u:se/cret@a"}`:     "payload.url: cannot be parsed" + urlHint,
		`{"url":"http://a b/"}`:            "payload.url: cannot be parsed" + urlHint,
		`{"url":"http://a/\n"}`:            "payload.url: cannot be parsed" + urlHint,

		`{` + ok + `,"method":"post"}`:                            `payload.method "post": must be in capitals` + methods,
		`{` + ok + `,"method":"CONNECT"}`:                         `payload.method "CONNECT": not allowed` + methods,
		`{` + ok + `,"method":"TRACE"}`:                           `payload.method "TRACE": not allowed` + methods,
		`{` + ok + `,"method":"GE T"}`:                            `payload.method "GE T": not an HTTP method` + methods,
		`{` + ok + `,"method":"` + strings.Repeat("A", 33) + `"}`: `payload.method "` + strings.Repeat("A", 33) + `": not an HTTP method` + methods,

		`{` + ok + `,"headers":{"a b":""}}`:                           `payload.headers "a": not a header name (letters, digits and hyphens)`,
		`{` + ok + `,"headers":{"Authorization: Bearer SECRET":"x"}}`: `payload.headers "Authorization": not a header name (letters, digits and hyphens)`,
		`{` + ok + `,"headers":{"":""}}`:                              `payload.headers: not a header name (letters, digits and hyphens)`,
		`{` + ok + `,"headers":{"é":""}}`:                             `payload.headers: not a header name (letters, digits and hyphens)`,
		`{` + ok + `,"headers":{"a":"secret\r\nb: c"}}`:               `payload.headers "a": its value has a control character (one line of text)`,
		`{` + ok + `,"headers":{"ONBEAT-task-id":"x"}}`:               `payload.headers "ONBEAT-task-id": is set by onbeat and cannot be overridden (leave it out)`,
		`{` + ok + `,"headers":{"onbeat-anything":"x"}}`:              `payload.headers "onbeat-anything": is set by onbeat and cannot be overridden (leave it out)`,
		`{` + ok + `,"headers":{"traceParent":"x"}}`:                  `payload.headers "traceParent": is set by onbeat and cannot be overridden (leave it out)`,
		`{` + ok + `,"headers":{"Onbeat_Fence":"x"}}`:                 `payload.headers "Onbeat_Fence": is set by onbeat and cannot be overridden (leave it out)`,
		`{` + ok + `,"headers":{"onbeat.task~id":"x"}}`:               `payload.headers "onbeat.task~id": is set by onbeat and cannot be overridden (leave it out)`,
		`{` + ok + `,"headers":{"content_length":"5"}}`:               `payload.headers "content_length": is a header of the connection, which onbeat sets (leave it out)`,
		`{` + ok + `,"headers":{"TRANSFER.encoding":"x"}}`:            `payload.headers "TRANSFER.encoding": is a header of the connection, which onbeat sets (leave it out)`,
		`{` + ok + `,"headers":{"content-length":"5"}}`:               `payload.headers "content-length": is a header of the connection, which onbeat sets (leave it out)`,
		`{` + ok + `,"headers":{"Transfer-Encoding":"x"}}`:            `payload.headers "Transfer-Encoding": is a header of the connection, which onbeat sets (leave it out)`,
		`{` + ok + `,"headers":{"host":"a/b"}}`:                       `payload.headers "host": its value is not a host (a name, or a name:port)`,
		`{` + ok + `,"headers":{"host":""}}`:                          `payload.headers "host": its value is not a host (a name, or a name:port)`,
		`{` + ok + `,"headers":{"a":5}}`:                              `payload.headers: want string, got a JSON number (pass a JSON value with the fields of the handler)`,
		`{` + ok + `,"headers":[]}`:                                   `payload.headers: want object, got a JSON array (pass a JSON value with the fields of the handler)`,
		`{` + ok + `,"timeout":"5"}`:                                  `payload.timeout "5": not a duration above zero (such as "5s" or "1m30s")`,
		`{` + ok + `,"timeout":"0s"}`:                                 `payload.timeout "0s": not a duration above zero (such as "5s" or "1m30s")`,
		`{` + ok + `,"timeout":"-1s"}`:                                `payload.timeout "-1s": not a duration above zero (such as "5s" or "1m30s")`,
		`{` + ok + `,"timeout":5}`:                                    `payload.timeout: want string, got a JSON number (pass a JSON value with the fields of the handler)`,
		`{` + ok + `,"expect":[200,99]}`:                              `payload.expect[1] "99": not an HTTP status (100 to 599; leave expect out to accept any 2xx)`,
		`{` + ok + `,"expect":[600]}`:                                 `payload.expect[0] "600": not an HTTP status (100 to 599; leave expect out to accept any 2xx)`,
		`{` + ok + `,"expect":200}`:                                   `payload.expect: want list, got a JSON number (pass a JSON value with the fields of the handler)`,
		`{` + ok + `,"expect":["200"]}`:                               `payload.expect: want int, got a JSON string (pass a JSON value with the fields of the handler)`,
		`{` + ok + `,"headder":{}}`:                                   "payload.headder: unknown field (did you mean headers?)",
		`{` + ok + `} {}`:                                             "payload: more text follows the JSON value, at byte 28 (pass one JSON value)",
		`"http://a.example"`:                                          "payload: want object, got a JSON string (pass a JSON value with the fields of the handler)",
	} {
		err := h.(handlers.PayloadChecker).CheckPayload([]byte(p))
		if err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", p, err, want)
		}
		if _, ok := errors.AsType[*task.FieldError](err); !ok {
			t.Errorf("%s: %v is no FieldError", p, err)
		}
		if err := h.Handle(t.Context(), &task.Task{Payload: []byte(p)}); handlers.IsDead(err) == errors.Is(err, handlers.ErrUnknownField) {
			t.Errorf("%s: the run ends with %v, want it dead unless a newer release may read it", p, err)
		}
	}
	for _, p := range []string{`{` + ok + `,"headers":{"X-A":"1","x-a":"2"}}`, `{` + ok + `,"headers":{"Host":"a","host":"b"}}`} {
		err := h.(handlers.PayloadChecker).CheckPayload([]byte(p))
		if err == nil || !strings.HasSuffix(err.Error(), ": appears twice (header names ignore case)") {
			t.Errorf("%s: %v", p, err)
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
