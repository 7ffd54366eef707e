package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// body makes the body of a request, and says what is broken about it, if anything is.
func (k *maker) body(op *operation) (body []byte, kind, broken string) {
	s, kind := op.body(), "application/json"
	switch {
	case op.method == "GET" || op.method == "DELETE" && !k.oneIn(10):
		return nil, "", ""
	case s == nil && !k.oneIn(8):
		return nil, "", ""
	case s == nil:
		return []byte(pick(k, `{"x":1}`, `[]`, `{`, `null`, `7`)), kind, "a body where none is taken"
	case !op.RequestBody.Required && k.oneIn(3):
		return nil, "", ""
	}
	v := k.value(s, "")
	if k.oneIn(3) {
		m := v.(map[string]any)
		if broken = k.spoil(m, k.branch(s, m)); broken != "" {
			return encode(v), kind, broken
		}
	}
	body = encode(v)
	if k.oneIn(6) {
		return k.spoilText(body, op.RequestBody.Required)
	}
	return body, kind, ""
}

// branch returns the shape of one of several that an object was made by.
func (k *maker) branch(s *shape, m map[string]any) *shape {
	s = k.doc.of(s)
	for _, one := range s.OneOf {
		if one = k.doc.of(one); (m["tasks"] != nil) == (one.Properties["tasks"] != nil) {
			return one
		}
	}
	return s
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // the generator itself is broken
	}
	return bytes.TrimSpace(b.Bytes())
}

// spoil breaks an object that was made by a shape, and says how. "": there was nothing to break.
func (k *maker) spoil(m map[string]any, s *shape) string {
	var typed []string
	for _, name := range sorted(s.Properties) {
		if p := k.doc.of(s.Properties[name]); len(p.kinds()) > 0 {
			typed = append(typed, name)
		}
	}
	if len(typed) == 0 {
		m["zz"] = 1
		return "a field too many"
	}
	name := pick(k, typed...)
	p := k.doc.of(s.Properties[name])
	kinds := p.kinds()
	switch k.IntN(7) {
	case 0:
		if len(s.Required) == 0 {
			return ""
		}
		name = pick(k, s.Required...)
		delete(m, name)
		return "without " + name
	case 1:
		extra := pick(k, "zz", strings.ToUpper(name), name+" ", "", "__proto__", name+"\x00")
		m[extra] = 1
		return fmt.Sprintf("with the field %q", extra)
	case 2:
		if slices.Contains(kinds, "null") {
			return ""
		}
		m[name] = nil
		return name + " is null"
	case 3:
		if len(p.Enum) == 0 {
			return ""
		}
		m[name] = pick(k, "nonsense", "DUE", " ")
		return name + " is none of the words"
	case 4:
		return k.spoilInside(m, name, p)
	}
	return k.otherKind(m, name, kinds)
}

// spoilInside breaks what lies in a field.
func (k *maker) spoilInside(m map[string]any, name string, p *shape) string {
	switch v := m[name].(type) {
	case map[string]any:
		if how := k.spoil(v, p); how != "" {
			return name + ": " + how
		}
	case []any:
		for _, item := range v {
			if of := k.doc.of(p.Items); of.Properties != nil {
				if how := k.spoil(item.(map[string]any), of); how != "" {
					return name + "[]: " + how
				}
			}
		}
	}
	return ""
}

// otherKind puts a value of another type into a field.
func (k *maker) otherKind(m map[string]any, name string, kinds []string) string {
	wrong := map[string]any{
		"string": "text", "integer": json.Number(pick(k, "1e400", "99999999999999999999", "7")), "number": json.Number("1.5"),
		"boolean": true, "array": []any{[]any{}}, "object": map[string]any{"a": map[string]any{}},
	}
	if slices.Contains(kinds, "integer") {
		wrong["huge"] = json.Number(pick(k, "1e400", "99999999999999999999", "-9223372036854775809"))
	}
	for _, kind := range kinds {
		delete(wrong, kind)
	}
	kind := pick(k, sorted(wrong)...)
	m[name] = wrong[kind]
	return name + " is of the type " + kind
}

// spoilText breaks the text of a body.
func (k *maker) spoilText(body []byte, required bool) (out []byte, kind, broken string) {
	kind = "application/json"
	rest := string(body[1:])
	comma := ","
	if rest == "}" {
		comma = ""
	}
	switch k.IntN(9) {
	case 0:
		return body[:1+k.IntN(len(body)-1)], kind, "cut off"
	case 1:
		return []byte("{\"\xff\":1" + comma + rest), kind, "not UTF-8"
	case 2:
		if name := firstField(body); name != "" {
			return []byte(fmt.Sprintf(`{%q:null,%s`, name, rest)), kind, "a field twice"
		}
		return []byte(`{"a":1,"a":1}`), kind, "a field twice"
	case 3:
		return append(body, pick(k, "{}", "x", ",", "\x00")...), kind, "more than one value"
	case 4:
		kind = pick(k, "text/plain", "application/x-www-form-urlencoded", "", "application/json; charset", "multipart/form-data; boundary=x", "application/jsonx")
		return body, kind, "the Content-Type " + kind
	case 5:
		if required {
			return nil, kind, "empty"
		}
	case 6:
		return []byte(pick(k, "null", "7", `"x"`, "[]", "[{}]", "true", " ", "nul")), kind, "not an object"
	case 7:
		return []byte(strings.Repeat(pick(k, "[", `{"a":`), 20_000)), kind, "too deep"
	}
	deep := strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)
	return []byte(`{"payload":` + deep + comma + rest), kind, "" // not against any schema, but unkind
}

// firstField returns the name of a field of an object.
func firstField(body []byte) string {
	var m map[string]any
	if json.Unmarshal(body, &m) != nil || len(m) == 0 {
		return ""
	}
	return sorted(m)[0]
}
