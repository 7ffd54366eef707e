package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

func nothing(context.Context, *task.Task) error { return nil }

func TestMux_givesEachTaskToTheHandlerOfItsType(t *testing.T) {
	t.Parallel()
	mux, boom := handlers.NewMux(), errors.New("boom")
	if err := mux.HandleFunc("a", nothing); err != nil {
		t.Fatal(err)
	}
	if err := mux.HandleFunc("b", func(context.Context, *task.Task) error { return boom }); err != nil {
		t.Fatal(err)
	}
	for typ, want := range map[string]error{"a": nil, "b": boom, "c": handlers.ErrUnknownType} {
		if err := mux.Serve(t.Context(), &task.Task{Type: typ}); !errors.Is(err, want) {
			t.Errorf("Serve(%s) = %v, want %v", typ, err, want)
		}
		h, ok := mux.Handler(typ)
		if ok != (typ != "c") || (h != nil) != ok {
			t.Errorf("Handler(%s) = %v, %t", typ, h, ok)
		}
	}
	if err := handlers.Func(mux.Serve).Handle(t.Context(), &task.Task{Type: "b"}); err != boom {
		t.Errorf("as a handler: %v", err)
	}
}

// beats is a handler with a state, which a nil one lacks.
type beats struct{ n int }

func (b *beats) Handle(context.Context, *task.Task) error {
	b.n++
	return nil
}

func TestMux_refuses(t *testing.T) {
	t.Parallel()
	mux := handlers.NewMux()
	if err := mux.HandleFunc("taken", nothing); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		typ  string
		h    handlers.TaskHandler
		want string
	}{
		{"", handlers.Func(nothing), "type: empty"},
		{"a b", handlers.Func(nothing), `type "a b": has a character`},
		{"a", nil, `type "a": its handler is nil`},
		{"a", handlers.Func(nil), `type "a": its handler is nil`},
		{"a", handlers.Typed[struct{}](nil), `type "a": its handler is nil`},
		{"a", (*beats)(nil), `type "a": its handler is nil`},
		{"taken", handlers.Func(nothing), `type "taken": already has a handler (register each type once)`},
	} {
		if err := mux.Handle(c.typ, c.h); !errors.Is(err, task.ErrInvalid) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("Handle(%q) = %v, want %s", c.typ, err, c.want)
		}
	}
	if got := mux.Types(); len(got) != 1 {
		t.Errorf("after the refusals, Types = %q", got)
	}
}

// note returns a middleware that writes down when it is entered and left.
func note(name string, to *[]string) handlers.Middleware {
	return func(next handlers.TaskHandler) handlers.TaskHandler {
		return handlers.Wrap(next, func(ctx context.Context, t *task.Task) error {
			*to = append(*to, name+"{")
			defer func() { *to = append(*to, "}"+name) }()
			return next.Handle(ctx, t)
		})
	}
}

func TestMux_putsTheFirstMiddlewareOutermost(t *testing.T) {
	t.Parallel()
	var got []string
	mux := handlers.NewMux()
	mux.Use(note("a", &got), note("b", &got))
	if err := mux.HandleFunc("x", func(context.Context, *task.Task) error { got = append(got, "run"); return nil }); err != nil {
		t.Fatal(err)
	}
	mux.Use(note("c", &got)) // also reaches x, which was there before
	if err := mux.Serve(t.Context(), &task.Task{Type: "x"}); err != nil {
		t.Fatal(err)
	}
	if s := strings.Join(got, " "); s != "a{ b{ c{ run }c }b }a" {
		t.Errorf("order: %s", s)
	}
}

func TestMux_composesMiddlewareOnceNotPerTask(t *testing.T) {
	t.Parallel()
	composed := 0
	mux := handlers.NewMux()
	mux.Use(func(next handlers.TaskHandler) handlers.TaskHandler { composed++; return next })
	if err := mux.HandleFunc("x", nothing); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := mux.Serve(t.Context(), &task.Task{Type: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if composed != 1 {
		t.Errorf("composed %d times", composed)
	}
}

func TestMux_panicsOnNilMiddleware(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(*handlers.Mux){
		"nil":         func(m *handlers.Mux) { m.Use(nil) },
		"returns nil": func(m *handlers.Mux) { m.Use(func(handlers.TaskHandler) handlers.TaskHandler { return nil }) },
	} {
		mux := handlers.NewMux()
		if err := mux.HandleFunc("x", nothing); err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if v := recover(); v == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			use(mux)
		}()
		if err := mux.HandleFunc("y", nothing); err != nil { // the lock is free again, and nothing has changed
			t.Error(err)
		}
	}
}

func TestMux_checksPayloadsThroughMiddleware(t *testing.T) {
	t.Parallel()
	mux := handlers.NewMux()
	mux.Use(func(next handlers.TaskHandler) handlers.TaskHandler { return handlers.Func(next.Handle) }) // hides all
	typed := handlers.Typed(func(context.Context, invoice) error { return nil })
	for typ, h := range map[string]handlers.TaskHandler{"plain": handlers.Func(nothing), "typed": typed, "wrapped": handlers.Recover()(typed)} {
		if err := mux.Handle(typ, h); err != nil {
			t.Fatal(err)
		}
	}
	if err := mux.CheckPayload("plain", []byte("anything")); err != nil {
		t.Error(err)
	}
	for _, typ := range []string{"typed", "wrapped"} {
		if err := mux.CheckPayload(typ, []byte(`{"number":1}`)); err != nil {
			t.Error(err)
		}
		if err := mux.CheckPayload(typ, []byte(`{}`)); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%s: %v", typ, err)
		}
	}
	if err := mux.CheckPayload("other", nil); !errors.Is(err, handlers.ErrUnknownType) {
		t.Errorf("other: %v", err)
	}
}

// lines is a payload whose Validate has a bug.
type lines struct{ Lines []string }

func (l lines) Validate() error { _ = l.Lines[0]; return nil }

func TestMux_refusesAPayloadWhoseCheckPanics(t *testing.T) {
	t.Parallel()
	mux := handlers.NewMux()
	for typ, h := range map[string]handlers.TaskHandler{
		"order": handlers.Typed(func(context.Context, lines) error { return nil }),
		"ends":  handlers.Typed(func(context.Context, ends) error { return nil }),
	} {
		if err := mux.Handle(typ, h); err != nil {
			t.Fatal(err)
		}
	}
	for _, typ := range []string{"order", "ends"} {
		err := mux.CheckPayload(typ, []byte(`{}`))
		var f *task.FieldError
		var p *handlers.PanicError
		if !errors.As(err, &f) || f.Field != "payload" || !strings.Contains(f.Reason, typ) || !errors.As(err, &p) || len(p.Stack) == 0 {
			t.Errorf("%s: %v", typ, err)
		}
		if errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", typ, err)
		}
	}
	if err := mux.CheckPayload("order", []byte(`{"Lines":["a"]}`)); err != nil {
		t.Error(err)
	}
}

// ends panics with an error that another matches.
type ends struct{}

func (ends) Validate() error { panic(context.Canceled) }

func TestMux_mayBeUsedWhileItGrows(t *testing.T) {
	t.Parallel()
	mux := handlers.NewMux()
	if err := mux.HandleFunc("x", nothing); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				if err := mux.Serve(context.Background(), &task.Task{Type: "x"}); err != nil {
					t.Error(err)
				}
				mux.Types()
			}
		})
	}
	for i := range 100 {
		if err := mux.HandleFunc(fmt.Sprint("y", i), nothing); err != nil {
			t.Error(err)
		}
		mux.Use(handlers.Recover())
	}
	wg.Wait()
}

func stacked(t testing.TB) *handlers.Mux {
	t.Helper()
	mux := handlers.NewMux()
	mux.Use(handlers.Log(quiet), handlers.Recover())
	for _, typ := range []string{"a", "b", "c", "x"} {
		if err := mux.HandleFunc(typ, nothing); err != nil {
			t.Fatal(err)
		}
	}
	return mux
}

func TestMux_allocatesNothing(t *testing.T) { // not parallel: it counts
	mux, x := stacked(t), &task.Task{Type: "x"}
	if n := testing.AllocsPerRun(100, func() { _ = mux.Serve(context.Background(), x) }); n != 0 {
		t.Errorf("a run through the mux, Log and Recover allocates %v times, want 0", n)
	}
}
