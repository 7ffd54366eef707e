package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

type invoice struct {
	Number int      `json:"number"`
	To     *address `json:"to"`
	Tags   []string `json:"tags"`
}

type address struct {
	City string `json:"city"`
}

func (i invoice) Validate() error {
	if i.Number == 0 {
		return &task.FieldError{Field: "number", Reason: "missing", Hint: "a number above zero"}
	}
	if i.Number < 0 {
		return errors.New("a negative\nnumber")
	}
	return nil
}

type checked struct{ N int }

func (c *checked) Validate() error { // would not survive a nil receiver
	if c.N > 9 {
		return errors.New("too big")
	}
	return nil
}

func TestTyped_decodes(t *testing.T) {
	t.Parallel()
	var got invoice
	h := handlers.Typed(func(_ context.Context, v invoice) error { got = v; return nil })
	if err := h.Handle(t.Context(), &task.Task{Payload: []byte(` {"number":4,"to":{"city":"Seoul"},"tags":["a"]} `)}); err != nil {
		t.Fatal(err)
	}
	if want := (invoice{4, &address{"Seoul"}, []string{"a"}}); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func TestTyped_namesTheFieldsThatItKnows(t *testing.T) {
	t.Parallel()
	type tree []tree
	type flat struct {
		To     string `json:"to,omitempty"`
		Amount *int
		Tags   map[string][]string `json:"tags"`
		Not    int                 `json:"-"`
		hidden int                 //nolint:unused // it is not to be named
	}
	for _, c := range []struct {
		h     handlers.TaskHandler
		known string
	}{
		{handlers.Typed(func(context.Context, flat) error { return nil }), "to, Amount, tags)"},
		{handlers.Typed(func(context.Context, *flat) error { return nil }), "to, Amount, tags)"},
		{handlers.Typed(func(context.Context, struct{ T tree }) error { return nil }), ""},
		{handlers.Sleep(), "for, fail)"},
	} {
		err := c.h.(handlers.PayloadChecker).CheckPayload([]byte(`{"wombat":1}`))
		if e, ok := errors.AsType[*task.FieldError](err); !ok || e.Field != "payload.wombat" || !strings.HasSuffix(err.Error(), c.known) {
			t.Errorf("%v, want %s", err, c.known)
		}
	}
}

func TestTyped_makesABadPayloadDead(t *testing.T) {
	t.Parallel()
	for payload, field := range map[string]string{
		``:                             "payload",
		` null `:                       "payload",
		`{`:                            "payload",
		`nonsense`:                     "payload",
		`[1]`:                          "payload",
		`{"number":"4"}`:               "payload.number",
		`{"number":1e99}`:              "payload.number",
		`{"number":1,"tags":{}}`:       "payload.tags",
		`{"number":1,"to":{"city":1}}`: "payload.to.city",
		`{"number":"1","nummer":2}`:    "payload.number",
		`{"nummer":2} x`:               "payload.nummer",
		`{"number":1}x`:                "payload",
		`{}`:                           "payload.number",
		`{"number":-1}`:                "payload",
	} {
		called := false
		h := handlers.Typed(func(context.Context, invoice) error { called = true; return nil })
		err := h.Handle(t.Context(), &task.Task{Payload: []byte(payload)})
		e, ok := errors.AsType[*task.FieldError](err)
		if !ok || e.Field != field || called || !handlers.IsDead(err) || !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%s: %v, called %t, dead %t, want %s refused", payload, err, called, handlers.IsDead(err), field)
		}
		if checked := h.(handlers.PayloadChecker).CheckPayload([]byte(payload)); checked == nil || checked.Error() != err.Error() || handlers.IsDead(checked) {
			t.Errorf("CheckPayload(%s) = %v", payload, checked)
		}
	}
}

// A run that meets a field of a newer release is retried: that release may be there by then.
func TestTyped_isRetriedForAnUnknownField(t *testing.T) {
	t.Parallel()
	for payload, field := range map[string]string{
		`{"number":1,"nummer":2}`:        "payload.nummer",
		`{"nummer":2}`:                   "payload.nummer", // so a number is missing
		`{"nummer":2,"number":"1"}`:      "payload.nummer",
		`{"number":1,"to":{"town":"x"}}`: "payload.town",
	} {
		h := handlers.Typed(func(context.Context, invoice) error { t.Error("called"); return nil })
		err := h.Handle(t.Context(), &task.Task{Payload: []byte(payload)})
		if e, ok := errors.AsType[*task.FieldError](err); !ok || e.Field != field || handlers.IsDead(err) || !errors.Is(err, handlers.ErrUnknownField) {
			t.Errorf("%s: %v, dead %t", payload, err, handlers.IsDead(err))
		}
		if checked := h.(handlers.PayloadChecker).CheckPayload([]byte(payload)); !errors.Is(checked, task.ErrInvalid) {
			t.Errorf("CheckPayload(%s) = %v", payload, checked)
		}
	}
}

// A lenient handler refuses all that a strict one refuses, except unknown fields, in the same words.
func TestTyped_lenient(t *testing.T) {
	t.Parallel()
	got := invoice{}
	strict := handlers.Typed(func(context.Context, invoice) error { return nil })
	lenient := handlers.Typed(func(_ context.Context, v invoice) error { got = v; return nil }, handlers.Lenient)
	for _, payload := range []string{`{"number":4,"nummer":2}`, `{"number":4,"to":{"town":"x"},"tags":["a"]}`} {
		if err := lenient.Handle(t.Context(), &task.Task{Payload: []byte(payload)}); err != nil || got.Number != 4 {
			t.Errorf("%s: %+v, %v", payload, got, err)
		}
		if err := lenient.(handlers.PayloadChecker).CheckPayload([]byte(payload)); err != nil {
			t.Errorf("CheckPayload(%s) = %v", payload, err)
		}
	}
	for _, payload := range []string{``, `null`, `{`, `nonsense`, `[1]`, `{"number":"4"}`, `{"number":1e99}`, `{"number":1} {}`, `{"number":1}x`, `{}`} {
		x := &task.Task{Payload: []byte(payload)}
		err, want := lenient.Handle(t.Context(), x), strict.Handle(t.Context(), x)
		if err == nil || err.Error() != want.Error() || !handlers.IsDead(err) {
			t.Errorf("%s: %v, want %v", payload, err, want)
		}
	}
	if err := lenient.Handle(t.Context(), &task.Task{Payload: []byte(`{"nummer":4}`)}); err == nil || !handlers.IsDead(err) {
		t.Errorf("without its number: %v", err)
	}
}

func accepts[T any](t *testing.T, payload string, want T) {
	t.Helper()
	var got T
	h := handlers.Typed(func(_ context.Context, v T) error { got = v; return nil })
	if err := h.Handle(t.Context(), &task.Task{Payload: []byte(payload)}); err != nil {
		t.Errorf("Typed[%T](%q) = %v", want, payload, err)
	} else if !reflect.DeepEqual(got, want) {
		t.Errorf("Typed[%T](%q) got %#v", want, payload, got)
	}
}

func TestTyped_takesNoPayloadWhereNothingCanBeMissing(t *testing.T) {
	t.Parallel()
	accepts(t, "", struct{}{})
	accepts(t, "{}", struct{}{})
	accepts[*invoice](t, "", nil)
	accepts[*checked](t, "null", nil)
	accepts[map[string]int](t, "", nil)
	accepts[[]int](t, "", nil)
	accepts[any](t, "", nil)
}

func TestTyped_takesEveryKind(t *testing.T) {
	t.Parallel()
	accepts(t, `"text"`, "text")
	accepts(t, `3`, 3)
	accepts(t, "raw \x00", []byte("raw \x00"))
	accepts(t, `{"a":1}`, json.RawMessage(`{"a":1}`))
	accepts[any](t, `[1]`, []any{1.0})
	accepts(t, `{"N":3}`, checked{3})
	accepts(t, `{"N":3}`, &checked{3})
}

func TestTyped_asksAValidateOnThePointerToo(t *testing.T) {
	t.Parallel()
	byValue := handlers.Typed(func(context.Context, checked) error { return nil })
	err := byValue.Handle(t.Context(), &task.Task{Payload: []byte(`{"N":10}`)})
	if err == nil || err.Error() != "payload: too big" {
		t.Errorf("by value: %v", err)
	}
	if byPointer := handlers.Typed(func(context.Context, *checked) error { return nil }); byPointer.Handle(t.Context(),
		&task.Task{Payload: []byte(`{"N":10}`)}) == nil {
		t.Error("by pointer: no error")
	}
}

func TestTyped_handsOnTheTaskAndTheError(t *testing.T) {
	t.Parallel()
	boom, own := errors.New("boom"), &task.Task{ID: "x"}
	h := handlers.Typed(func(ctx context.Context, _ struct{}) error {
		if got := handlers.FromContext(ctx); got != own {
			t.Errorf("FromContext = %+v", got)
		}
		return boom
	})
	for _, ctx := range []context.Context{t.Context(), handlers.NewContext(t.Context(), own), handlers.NewContext(t.Context(), &task.Task{})} {
		if err := h.Handle(ctx, own); err != boom {
			t.Errorf("Handle = %v", err)
		}
	}
}
