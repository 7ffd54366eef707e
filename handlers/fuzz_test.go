package handlers

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/onbeat/onbeat/task"
)

// A payload of exec or sleep either can be run, or is refused in one line that names the field.
func FuzzCommandPayload(f *testing.F) {
	for _, p := range []string{
		`{"command":["sh","-c","x"],"env":{"A":"b"},"dir":"/","stdin":"x"}`, `{"command":[""]}`, `{"command":["a\u0000"]}`, `{"env":{"A=B":""}}`,
		`{"command":["a"],"env":{"ONBEAT_FENCE":"1"}}`, `{"for":"3s"}`, `{"for":"-3s"}`, `{"for":3}`, ``, `null`, "\xff",
	} {
		f.Add([]byte(p))
	}
	exec, sleep := Exec(ExecConfig{}), Sleep()
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, h := range []TaskHandler{exec, sleep} {
			err := h.(PayloadChecker).CheckPayload(payload)
			if err == nil {
				continue
			}
			if fe, ok := errors.AsType[*task.FieldError](err); !ok || !strings.HasPrefix(fe.Field, "payload") || fe.Reason == "" {
				t.Fatalf("%q: %v names no field", payload, err)
			}
			if strings.ContainsAny(err.Error(), "\r\n\x00") {
				t.Fatalf("%q: %q is not one line", payload, err)
			}
		}
	})
}

// A payload that is accepted sends no header that a receiver could take for one of ours, in any spelling.
func FuzzHTTPHeader(f *testing.F) {
	for _, s := range []string{"Onbeat-Fence", "onbeat_fence", "ONBEAT.FENCE", "X-A", "traceparent", "Content_Length", "host", "é", ""} {
		f.Add(s, "value")
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		c := &httpCall{}
		if c.readHeaders(&httpPayload{Headers: map[string]string{name: value}}) != nil {
			return
		}
		seen := strings.ToUpper(strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
				return r
			}
			return '_'
		}, name))
		if strings.HasPrefix(seen, "ONBEAT_") || seen == "TRACEPARENT" || seen == "CONTENT_LENGTH" || seen == "TRANSFER_ENCODING" {
			t.Fatalf("%q is sent, and may be taken for %s", name, seen)
		}
		req := &http.Request{Header: c.header}
		for k, v := range req.Header {
			if strings.ContainsAny(k+v[0], "\r\n\x00") {
				t.Fatalf("%q: %q is sent", name, v)
			}
		}
	})
}

// References resolve to the values of the names in them and to nothing else; an escaped reference stays text; JSON stays JSON.
func FuzzReferences(f *testing.F) {
	for _, s := range []string{"Bearer ${A}", "$${A}", "$$${A}$$", "${A}${B}${A}", "${", "${a b}", "${\u00e9}", "\\${A}\"", ""} {
		f.Add(s, `p"a\ss<&>`)
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		escaped := regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`).ReplaceAllString(text, `$$$0`)
		if names, _ := refers(escaped); len(names) > 0 {
			t.Fatalf("%q refers to %q", escaped, names)
		}
		if again := resolve(escaped, func(name string) string { t.Fatalf("asked for %s", name); return "" }); again != text {
			t.Fatalf("%q is sent as %q", text, again)
		}
		value = strings.ToValidUTF8("s3-cr3t"+strings.NewReplacer("$", "", "\x00", "").Replace(value), "")
		names, _ := refers(text)
		resolved := resolve(text, func(name string) string {
			if !slices.Contains(names, name) {
				t.Fatalf("%q: asked for %s, which is not in %q", text, name, names)
			}
			return value
		})
		if len(names) > 0 {
			if !strings.Contains(resolved, value) {
				t.Fatalf("%q is sent as %q", text, resolved)
			}
		}
		body, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		sent := resolve(string(body), func(string) string { return jsonText(value) })
		var got string
		if err := json.Unmarshal([]byte(sent), &got); err != nil {
			t.Fatalf("%s is sent as %s: %v", body, sent, err)
		}
		if utf8.ValidString(text) && got != resolved {
			t.Fatalf("%s is sent as %q, want %q", body, got, resolved)
		}
	})
}

// The answers of a receiver.
func FuzzHTTPAnswer(f *testing.F) {
	for _, s := range []string{"7", "-5", "99999999999999999999", "Wed, 21 Oct 2026 07:28:00 GMT", "", "00-00112233445566778899aabbccddeeff-0011223344556677-01",
		"ff-0-0-0", "no\r\n\x1b[31m\u202e\u009b\xff"} {
		f.Add(s)
	}
	now := time.UnixMilli(1_800_000_000_000)
	f.Fuzz(func(t *testing.T, s string) {
		_, _ = parseRetryAfter(s, now)
		line := oneLine(s, 64)
		if len(line) > 64+len("…") || strings.ContainsAny(line, "\r\n\x00\x1b\u009b\u202e") {
			t.Fatalf("%q is shown as %q", s, line)
		}
		if text := headerText(s); strings.ContainsAny(text, "\r\n\x00") {
			t.Fatalf("%q is sent as %q", s, text)
		}
	})
}

// No spelling of an address that is not public gets past the guard.
func FuzzGuard(f *testing.F) {
	f.Add([]byte{127, 0, 0, 1}, []byte{})
	f.Add([]byte{168, 63, 129, 16}, []byte{0x2a, 0, 0x14, 0x50, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, inner, prefix []byte) {
		if len(inner) != 4 {
			return
		}
		v4 := netip.AddrFrom4([4]byte(inner))
		if isPublic(v4) {
			return
		}
		spelt := map[string][]byte{
			"mapped":     append([]byte{10: 0xff, 11: 0xff}, inner...),
			"compatible": append(make([]byte, 12), inner...),
			"NAT64":      append([]byte{1: 0x64, 2: 0xff, 3: 0x9b, 11: 0}, inner...),
			"6to4":       append(append([]byte{0x20, 0x02}, inner...), make([]byte, 10)...),
		}
		if len(prefix) == 8 {
			spelt["ISATAP"] = append(append(prefix[:8:8], 0, 0, 0x5e, 0xfe), inner...)
			spelt["ISATAP, universal"] = append(append(prefix[:8:8], 2, 0, 0x5e, 0xfe), inner...)
		}
		for name, b := range spelt {
			if a := netip.AddrFrom16([16]byte(b)); isPublic(a) {
				t.Fatalf("%s is let through as %s, %s", v4, name, a)
			}
		}
	})
}
