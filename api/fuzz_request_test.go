package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// request is one request of the fuzzer.
type request struct {
	op     *operation // nil: none of the document
	method string
	path   string // escaped
	query  string
	header http.Header
	body   []byte
	who    string // whose token
	broken string // what is wrong with it, if the generator knows; then it must not succeed
	odd    bool   // the path may mean another operation, or none
	stream bool
}

func (q *request) String() string {
	return fmt.Sprintf("%s %s?%s %v as %s (broken: %q) %.300q", q.method, q.path, q.query, q.header, q.who, q.broken, q.body)
}

// breaks notes what is wrong.
func (q *request) breaks(why string) {
	if q.broken == "" {
		q.broken = why
	}
}

// request makes one for an operation.
func (k *maker) request(op *operation, who string) *request {
	q := &request{op: op, method: op.method, who: who, header: http.Header{}}
	k.place(q)
	k.ask(q)
	body, kind, broken := k.body(op)
	if q.body = body; broken != "" {
		q.breaks(broken)
	}
	if kind != "" || len(body) > 0 {
		q.header.Set("Content-Type", kind)
	}
	k.heads(q)
	k.revise(q)
	if k.oneIn(60) {
		k.otherMethod(q)
	}
	if op.ID == "listEvents" && q.broken == "" && k.oneIn(4) {
		q.stream = true
		q.header.Set("Accept", "text/event-stream")
	}
	return q
}

// revise names a revision that a schedule has, or had.
func (k *maker) revise(q *request) {
	revision, name, ok := strings.Cut(k.memory.one(k.Rand, "revised"), " ")
	if !ok || name == "" || q.broken != "" || k.oneIn(2) {
		return
	}
	switch {
	case q.op.ID == "revertSchedule":
		q.body = []byte(`{"revision":` + revision + `}`)
	case q.op.ID == "replaceSchedule" && q.header.Get("If-Match") != "":
		q.header.Set("If-Match", `"`+revision+`"`)
	default:
		return
	}
	q.path, q.odd = strings.Replace(q.op.path, "{name}", pathOf("", name)[1:], 1), false
}

// place fills in the parameters of the path.
func (k *maker) place(q *request) {
	kind := strings.Split(q.op.path, "/")[2]
	if q.op.ID == "retryTask" {
		kind = "dead"
	}
	var parts []string
	for _, part := range strings.Split(q.op.path, "/") {
		if !strings.HasPrefix(part, "{") {
			parts = append(parts, part)
			continue
		}
		known := k.memory.one(k.Rand, kind)
		switch n := k.IntN(20); {
		case n < 15 && known != "" || n == 0:
			part = pathOf("", known)[1:]
		case n < 17:
			part = url.PathEscape(k.fresh())
		case n < 19:
			name := pick(k, strange...)
			part = pathOf("", name)[1:]
			if q.op.ID == "replaceSchedule" && (len(name) > 255 || strings.ContainsAny(name, "\x00\n\x1b\u202e") || !utf8.ValidString(name)) {
				q.breaks("no name of a schedule")
			}
		default:
			part = pick(k, "%ff", "%00", "%2e%2e", "%2E", "..%2f..", "a//b", "../counts", "a/../b", "%2F", "a%2Fb/..", "%u0041", "a;b", "日本")
			q.odd = true
		}
		q.odd = q.odd || part == ""
		parts = append(parts, part)
	}
	q.path = strings.Join(parts, "/")
}

// ask makes the query.
func (k *maker) ask(q *request) {
	var list []string
	add := func(name, value string) { list = append(list, url.QueryEscape(name)+"="+url.QueryEscape(value)) }
	for _, p := range q.op.Parameters {
		if p.In != "query" || !k.oneIn(3) {
			continue
		}
		value, broken := fmt.Sprint(k.value(p.Schema, p.Name)), ""
		if k.oneIn(6) {
			value, broken = k.wrong(p.Name, p.Schema, value)
		}
		if add(p.Name, value); k.oneIn(25) {
			if add(p.Name, value); !p.Explode {
				broken = "given twice"
			}
		}
		if broken != "" {
			q.breaks("?" + p.Name + " " + broken)
		}
	}
	if k.oneIn(30) {
		add(pick(k, "nonsense", "Limit", "limit[]", "\x00", strings.Repeat("z", 3_000)), "1")
		q.breaks("an unknown parameter")
	}
	if q.query = strings.Join(list, "&"); k.oneIn(60) {
		q.query = strings.Trim(q.query+"&"+pick(k, "a=%zz", "limit=1;after=x", "%"), "&")
		q.breaks("a query that cannot be read")
	}
}

// wrong returns a value that a parameter cannot have, or one that is only unkind.
func (k *maker) wrong(name string, s *shape, valid string) (value, broken string) {
	s = k.doc.of(s)
	moments := []string{"since", "from", "to", "until", "every", "jitter", "tolerance"}
	switch {
	case slices.Contains(s.kinds(), "integer"):
		return pick(k, "abc", "1.5", "1e3", "99999999999999999999", " 1", "0x10", "-99999999999"), "is no number"
	case slices.Contains(s.kinds(), "boolean"):
		return pick(k, "yes", "TRUE", "1", "2"), "is no truth"
	case len(s.Enum) > 0:
		return pick(k, "nonsense", "DUE"), "is none of the words"
	case slices.Contains(moments, name):
		return pick(k, "soon", "1x", "2030-13-01", "99999999999h", "0000-01-01", "-"), "is no time"
	case len(s.kinds()) > 0 && s.kinds()[0] == "string":
		return pick(k, strange...), ""
	}
	return valid, ""
}

// heads sets headers.
func (k *maker) heads(q *request) {
	for _, p := range q.op.Parameters {
		if p.In != "header" || !k.oneIn(5) {
			continue
		}
		switch p.Name {
		case "If-Match":
			v := pick(k, `"1"`, `"2"`, `"x"`, "1", `W/"1"`, "'1'", "`1`", `"+1"`, `"1`, `""`, `"-1"`, `"99999999999999999999"`, "*")
			if q.header.Set(p.Name, v); v != `"1"` && v != `"2"` {
				q.breaks("If-Match " + v)
			}
		case "If-None-Match":
			v := pick(k, "*", `"1"`, "x")
			if q.header.Set(p.Name, v); v != "*" || q.header.Get("If-Match") != "" {
				q.breaks("If-None-Match " + v)
			}
		case keyHeader:
			k.key(q)
		default:
			q.header.Set(p.Name, pick(k, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "nonsense", "a=b", strings.Repeat("t", 4_000)))
		}
	}
}

// key sets an Idempotency-Key.
func (k *maker) key(q *request) {
	switch k.IntN(6) {
	case 0:
		q.header[keyHeader] = []string{pick(k, "", strings.Repeat("k", 256), "a\tb", "\u65e5")}
		q.breaks("no Idempotency-Key")
	case 1:
		q.header[keyHeader] = []string{"a", "b"}
		q.breaks("two Idempotency-Keys")
	default:
		q.header.Set(keyHeader, k.fresh())
	}
}

// otherMethod asks with a method that the document does not have for the path.
func (k *maker) otherMethod(q *request) {
	q.method = pick(k, "PATCH", "DELETE", "PUT", "POST", "TRACE", "BREW", "HEAD", "OPTIONS", "GET")
	if slices.Contains(k.doc.methods(q.op.path), q.method) {
		q.method = "PATCH"
	}
	q.body, q.broken = nil, ""
	if q.method != "HEAD" && q.method != "OPTIONS" {
		q.breaks("the method " + q.method)
	}
	q.op = nil
}
