package main

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/onbeat/onbeat/internal/strictjson"
	"github.com/onbeat/onbeat/task"
)

// JSON that Check accepts means what it seems to mean: decoded and encoded again, it has the same number of keys, and no
// U+FFFD that was not in the input.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{"a":1,"a":2}`, `{"a":{"b":[1,{"c":1,"c":2}]}}`, `["\ud800"]`, `["\ud83d\ude00","\\ud800","\ufffd"]`, "{\"b\xff\":1}", `{"":1,"":2}`, `1e999`, `{"A":1,"a":2}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		err := strictjson.Check(data, "payload", nil)
		if err != nil {
			if !askedWrongly(err) || strings.ContainsAny(err.Error(), "\r\n\x00\x1b") || !utf8.ValidString(err.Error()) {
				t.Fatalf("%q: %q", data, err)
			}
			return
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if have := bytes.Count(data, []byte(`":`)); keysOf(v) > have || !bytes.Contains(data, []byte("\ufffd")) && !bytes.Contains(bytes.ToLower(data), []byte(`\ufffd`)) && hasReplacement(v) {
			t.Fatalf("%q reads %v", data, v)
		}
		if n := countKeys(data); n != keysOf(v) {
			t.Fatalf("%q has %d keys, and %d are read", data, n, keysOf(v))
		}
	})
}

func keysOf(v any) (n int) {
	switch x := v.(type) {
	case map[string]any:
		n = len(x)
		for _, e := range x {
			n += keysOf(e)
		}
	case []any:
		for _, e := range x {
			n += keysOf(e)
		}
	}
	return n
}

func hasReplacement(v any) bool {
	switch x := v.(type) {
	case string:
		return strings.ContainsRune(x, utf8.RuneError)
	case map[string]any:
		for k, e := range x {
			if strings.ContainsRune(k, utf8.RuneError) || hasReplacement(e) {
				return true
			}
		}
	case []any:
		for _, e := range x {
			if hasReplacement(e) {
				return true
			}
		}
	}
	return false
}

// countKeys counts the colons outside of strings.
func countKeys(data []byte) (n int) {
	inside := false
	for i := 0; i < len(data); i++ {
		switch {
		case data[i] == '\\':
			i++
		case data[i] == '"':
			inside = !inside
		case data[i] == ':' && !inside:
			n++
		}
	}
	return n
}

// The reader loses no line of a file, and returns no line that is longer than allowed.
func FuzzLines(f *testing.F) {
	f.Add("a\nb\r\n\n c \n\xef\xbb\xbfd", 8)
	f.Add(strings.Repeat("x", 100_000)+"\ny", 64)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 8 || limit > 1<<20 {
			return
		}
		var got []string
		r := newLineReader(strings.NewReader(text), limit)
		for {
			line, err := r.next()
			if err == io.EOF {
				break
			}
			if err != nil && !askedWrongly(err) {
				t.Fatal(err)
			}
			if len(line) > limit {
				t.Fatalf("%d bytes", len(line))
			}
			if err != nil {
				line = []byte("too long")
			}
			got = append(got, string(line))
		}
		var want []string
		for i, line := range strings.SplitAfter(text, "\n") {
			long := len(line) > limit
			if i == 0 {
				line = strings.TrimPrefix(line, "\xef\xbb\xbf")
			}
			if long {
				line = "too long"
			}
			if line = string(bytes.TrimSpace([]byte(line))); line != "" {
				want = append(want, line)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: read %q, want %q", text, got, want)
		}
	})
}

// Moments and waits of flags.
func FuzzMoment(f *testing.F) {
	for _, s := range []string{"2030-01-31T09:00:00Z", "2h", "-2h", "1e300", "NaN", "0.5", "1m", "9999-12-31T23:59:59.999999999+14:00", "0000-01-01T00:00:00Z", "Inf"} {
		f.Add(s)
	}
	now := time.UnixMilli(1_800_000_000_000)
	f.Fuzz(func(t *testing.T, s string) {
		for name, parse := range map[string]func() error{
			"moment": func() error { _, err := parseMoment("from", s, now); return err },
			"time":   func() error { _, err := task.ParseTime("at", s); return err },
			"wait": func() error {
				d, err := waitOf(s)
				if d < 0 {
					t.Fatalf("%q: waits %v", s, d)
				}
				return err
			},
		} {
			if err := parse(); err != nil && (!askedWrongly(err) || strings.ContainsAny(err.Error(), "\r\n\x00\x1b")) {
				t.Fatalf("%s %q: %q", name, s, err)
			}
		}
	})
}
