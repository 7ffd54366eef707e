package handlers

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/onbeat/onbeat/task"
)

// Mux gives each task to the handler of its type. Make one with [NewMux].
//
// Any number of goroutines may use it, even while handlers are still being added: a task sees a handler whole or not at
// all. Handlers are wrapped in the middleware once, when the handler or the middleware is added, so that a run costs one
// look-up.
type Mux struct {
	mu         sync.Mutex // serialises changes; readers never wait
	middleware []Middleware
	entries    atomic.Pointer[map[string]muxEntry]
}

type muxEntry struct {
	own TaskHandler // without middleware
	run TaskHandler // within its middleware
}

// NewMux returns an empty Mux.
func NewMux() *Mux {
	m := &Mux{}
	m.entries.Store(&map[string]muxEntry{})
	return m
}

// Handle adds the handler of a type. It refuses an invalid name (see [task.CheckName]), a nil handler, and a type that
// already has a handler, because which of two handlers runs must not depend on the order of files.
func (m *Mux) Handle(typ string, h TaskHandler) error {
	if err := task.CheckName("type", typ); err != nil {
		return err
	}
	if isNil(h) {
		return &task.FieldError{Field: "type", Value: typ, Reason: "its handler is nil", Hint: "pass a TaskHandler or a Func"}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := *m.entries.Load()
	if _, taken := old[typ]; taken {
		return &task.FieldError{Field: "type", Value: typ, Reason: "already has a handler", Hint: "register each type once"}
	}
	next := maps.Clone(old)
	next[typ] = muxEntry{own: h, run: compose(m.middleware, h)}
	m.entries.Store(&next)
	return nil
}

// HandleFunc adds a function as the handler of a type, as [Mux.Handle] does.
func (m *Mux) HandleFunc(typ string, fn func(ctx context.Context, t *task.Task) error) error {
	return m.Handle(typ, Func(fn))
}

// Use wraps every handler in middleware: those already added and those to come. The first middleware is the outermost, and
// a later call goes inside of an earlier one. Use panics if a middleware is nil or returns nil, because both are bugs in
// the program.
func (m *Mux) Use(mw ...Middleware) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.ContainsFunc(mw, func(w Middleware) bool { return w == nil }) {
		panic("handlers: nil Middleware passed to Mux.Use")
	}
	all := append(slices.Clip(m.middleware), mw...)
	next := maps.Clone(*m.entries.Load())
	for typ, e := range next {
		next[typ] = muxEntry{own: e.own, run: compose(all, e.own)}
	}
	m.middleware = all
	m.entries.Store(&next)
}

func compose(middleware []Middleware, h TaskHandler) TaskHandler {
	for i := len(middleware) - 1; i >= 0; i-- {
		if h = middleware[i](h); isNil(h) {
			panic(fmt.Sprintf("handlers: Middleware %d of the Mux returned nil", i))
		}
	}
	return h
}

// isNil reports whether a handler would panic at its first run: nil, a nil pointer or function, or [Typed] of a nil
// function.
func isNil(h TaskHandler) bool {
	if t, ok := h.(interface{ nilFunc() bool }); ok {
		return t.nilFunc()
	}
	switch v := reflect.ValueOf(h); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func:
		return v.IsNil()
	}
	return false
}

// Handler returns the handler of a type, within its middleware.
func (m *Mux) Handler(typ string) (TaskHandler, bool) {
	e, ok := (*m.entries.Load())[typ]
	return e.run, ok
}

// Types lists the types that have a handler, sorted.
func (m *Mux) Types() []string { return slices.Sorted(maps.Keys(*m.entries.Load())) }

// Serve runs a task with the handler of its type. It returns [ErrUnknownType] if there is none. (A dispatcher asks
// [Mux.Handler] first, and leaves such a task due.)
//
// As in net/http, Handle adds a handler and another method serves. handlers.Func(m.Serve) is the mux as a [TaskHandler].
func (m *Mux) Serve(ctx context.Context, t *task.Task) error {
	e, ok := (*m.entries.Load())[t.Type]
	if !ok {
		return fmt.Errorf("%w: %q", ErrUnknownType, t.Type)
	}
	return e.run.Handle(ctx, t)
}

// CheckPayload asks the handler of a type, if it is a [PayloadChecker], whether it could use a payload. The error is a
// [*task.FieldError], or matches [ErrUnknownType]: that one is not a fault yet, because a newer release may know the type.
//
// A check that panics refuses the payload; the error also has the [*PanicError]. A payload from elsewhere must not end a process.
func (m *Mux) CheckPayload(typ string, payload []byte) (err error) {
	e, ok := (*m.entries.Load())[typ]
	if !ok {
		return fmt.Errorf("%w: %q", ErrUnknownType, typ)
	}
	c, ok := As[PayloadChecker](e.own)
	if !ok {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			p := newPanicError(v)
			p.Value = fmt.Sprint(v) // an error that was the value must not decide what this one matches
			err = fmt.Errorf("%w: %w", &task.FieldError{Field: "payload", Reason: fmt.Sprintf("the handler of type %q cannot check it", typ)}, p)
		}
	}()
	return c.CheckPayload(payload)
}
