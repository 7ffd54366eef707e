package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat/task"
)

type order struct {
	Number int                    `json:"number"`
	To     *struct{ A, B string } `json:"to"`
	Tags   []string               `json:"tags"`
	Raw    json.RawMessage        `json:"raw"`
	Any    any                    `json:"any"`
	Level  level                  `json:"level"`
}

// level is read by an UnmarshalJSON of its own, which may fail, panic or end the goroutine.
type level string

func (l *level) UnmarshalJSON(b []byte) error {
	switch *l = level(b); *l {
	case `"bad"`:
		return errors.New("a bad level")
	case `"refused"`:
		return errors.New("this level is refused")
	case `"panic"`:
		panic("level")
	case `"exit"`:
		runtime.Goexit()
	case `"inner"`:
		var inner order // while another decoder is in use
		return decodePayload([]byte(`{"number":7,"raw":"inner"}`), &inner, false)
	}
	return nil
}

// A decoder that has read other payloads decodes like a fresh one: the same value, or the same error.
func FuzzDecodePayload(f *testing.F) {
	for _, p := range []string{
		``, `null`, ` {"number":1} `, `{"number":1}}`, `{"number":1} {"number":2}`, `{"to":{"a":"","B":"x"}}`, `{"to":{"c":""}}`, `[]`, `3`, "\xff", `{"number":"x"}`,
		`{"new":1,"number":"x"}`, `{"any":{"a":[1,null,"\u00e9"]},"raw":  [1, 2]}`, `{"tags":["a"],"Tags":["b"],"tags":null}`, `{"level":"bad"}`, `{"level":"inner"}`,
		`{"number":1`, `{"number":1}` + "\u00a0", `{"raw":"` + strings.Repeat("x", 600) + `"}`, `{"number":1e99,"new":2}`,
	} {
		f.Add([]byte(p), []byte(`{"number":3,"raw":{"a":1}}`))
	}
	f.Fuzz(func(t *testing.T, payload, before []byte) {
		if bytes.Contains(payload, []byte("panic")) || bytes.Contains(payload, []byte("exit")) ||
			bytes.Contains(before, []byte("panic")) || bytes.Contains(before, []byte("exit")) {
			return
		}
		sameAsFresh[order](t, payload, before)
		sameAsFresh[any](t, payload, before)
		sameAsFresh[map[string]*order](t, payload, before)
		sameAsFresh[int](t, payload, before)
	})
}

func sameAsFresh[T any](t *testing.T, payload, before []byte) {
	t.Helper()
	for _, lenient := range []bool{false, true} {
		var other, got, want T
		_ = decodePayload(before, &other, lenient)
		err, fresh := decodePayload(payload, &got, lenient), freshly(payload, &want, lenient)
		if fmt.Sprint(err) != fmt.Sprint(fresh) || err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%T of %q after %q, lenient %t:\n got %+v, %v\nwant %+v, %v", got, payload, before, lenient, got, err, want, fresh)
		}
		if err == nil {
			if len(bytes.TrimSpace(payload)) > 0 && !json.Valid(payload) {
				t.Fatalf("%q was taken for JSON", payload)
			}
			continue
		}
		run := refused(payload, err)
		if again := errors.Is(err, ErrUnknownField) && json.Valid(payload); IsDead(run) == again || !errors.Is(run, task.ErrInvalid) || lenient && again {
			t.Fatalf("%q, lenient %t: %v, dead %t", payload, lenient, run, IsDead(run))
		}
	}
}

// freshly is what decodePayload means: one strict decoder for each payload, and no second look.
func freshly[T any](payload []byte, v *T, lenient bool) error {
	if blank := bytes.TrimSpace(payload); len(blank) == 0 || string(blank) == "null" {
		if mayBeEmpty(reflect.TypeFor[T]()) {
			return nil
		}
		return &task.FieldError{Field: "payload", Reason: "missing", Hint: payloadHint}
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	if !lenient {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(v); err != nil {
		return decodeError(err, payload, reflect.TypeFor[T]())
	}
	if _, err := d.Token(); err != io.EOF {
		return &task.FieldError{Field: "payload", Hint: "pass one JSON value",
			Reason: fmt.Sprintf("more text follows the JSON value, at byte %d", d.InputOffset())}
	}
	return nil
}

// The error of a run is kept in Redis, where the payload may be encrypted.
func TestDecodePayload_showsNoValueInAnError(t *testing.T) {
	t.Parallel()
	type all struct {
		Text   int         `json:"text,string"`
		Number json.Number `json:"number"`
		At     time.Time   `json:"at"`
		From   netip.Addr  `json:"from"`
		Big    *big.Int    `json:"big"`
		Level  level       `json:"level"`
	}
	for payload, want := range map[string]string{
		`{"text":"hunter2hunter3"}`:                        "unmarshal \"***\" into int",
		`{"number":"hunter2hunter3"}`:                      "***",
		`{"at":"hunter2hunter3"}`:                          `parsing time "***" as`,
		`{"from":"hunter2hunter3"}`:                        `ParseAddr("***"): unable to parse IP`,
		`{"from":"\"hunter2\"hunter3"}`:                    `ParseAddr("***"`,
		`{"big":"hunter2hunter3"}`:                         "***",
		`{"big":31337.31337}`:                              `"***" into`,
		`{"level":"refused"}`:                              `this level is ***`,
		`{"at":"` + strings.Repeat("hunter2", 1000) + `"}`: `parsing time "***`,
		`{"new":[` + strings.Repeat(`"hunter2hunter3",`, 1000) + `1],"at":"hunter2hunter3"}`: `parsing time "***`,
	} {
		var v all
		err := decodePayload([]byte(payload), &v, true)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", payload, err, want)
		}
		for _, part := range []string{"hunter", "31337"} {
			if strings.Contains(fmt.Sprint(err), part) {
				t.Errorf("%.40s shows %s: %v", payload, part, err)
			}
		}
	}
}

// No payload has anything in it that another left behind, whatever happened to those in between.
func TestDecodePayload_keepsPayloadsApart(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 300 {
				spoil(i)
				n, raw := w*1000+i, fmt.Sprintf(`"%s"`, strings.Repeat(string(rune('a'+w)), i))
				var got order
				if err := decodePayload(fmt.Appendf(nil, `{"number":%d,"raw":%s} `, n, raw), &got, false); err != nil {
					t.Errorf("%d: %v", n, err)
				} else if want := (order{Number: n, Raw: json.RawMessage(raw)}); !reflect.DeepEqual(got, want) {
					t.Errorf("got %+v, want %+v", got, want)
				}
			}
		})
	}
	wg.Wait()
}

// spoil decodes a payload that goes wrong in one of the ways there are.
func spoil(i int) {
	payload := []string{
		`{"level":"panic","raw":1}`, `{"level":"exit","raw":1}`, `{"level":"bad"}`, `{"number":1} 2`, `{"number":`, `{"new":1}`, `{"level":"inner"}`, "{\"number\":1}\n\n",
		`{"raw":"` + strings.Repeat("y", longestKept) + `"}`,
	}[i%9]
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		var v order
		_ = decodePayload([]byte(payload), &v, false)
	}()
	<-done
}
