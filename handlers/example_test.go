package handlers_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

type Invoice struct {
	Number int `json:"number"`
}

func ExampleTyped() {
	send := handlers.Typed(func(ctx context.Context, inv Invoice) error {
		fmt.Println("invoice", inv.Number, "by task", handlers.FromContext(ctx).ID)
		return nil
	})
	t := task.New("invoice.send", Invoice{Number: 42}, task.ID("inv-42"))
	fmt.Println(send.Handle(context.Background(), t))

	t.Payload = []byte(`{"nummer": 42}`)
	err := send.Handle(context.Background(), t)
	fmt.Println(err, handlers.IsDead(err))
	// Output:
	// invoice 42 by task inv-42
	// <nil>
	// payload.nummer: unknown field, which a newer release may know (did you mean number?) false
}

// Where a producer may send more than a handler needs, its fields are ignored.
func ExampleTyped_lenient() {
	send := handlers.Typed(func(_ context.Context, inv Invoice) error {
		fmt.Println("invoice", inv.Number)
		return nil
	}, handlers.Lenient)
	fmt.Println(send.Handle(context.Background(), task.New("invoice.send", map[string]any{"number": 42, "currency": "EUR"})))
	// Output:
	// invoice 42
	// <nil>
}

// The run that was repeated finds the row of its effect, and changes nothing.
func ExampleOnce() {
	db, _ := sql.Open("sqlite", ":memory:")
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection would have a memory of its own
	ctx := context.Background()
	_, _ = db.ExecContext(ctx, "CREATE TABLE accounts AS SELECT 100 AS balance")
	if err := handlers.OnceTable(ctx, db); err != nil {
		fmt.Println(err)
	}

	charge := handlers.Once(db, func(ctx context.Context, tx *sql.Tx, t *task.Task) error {
		_, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - 10")
		return err
	})
	t := task.New("charge", nil, task.ID("inv-42"))
	fmt.Println(charge.Handle(ctx, t), charge.Handle(ctx, t))

	var balance int
	_ = db.QueryRowContext(ctx, "SELECT balance FROM accounts").Scan(&balance)
	fmt.Println(balance)
	// Output:
	// <nil> <nil>
	// 90
}

func ExampleOnceFunc() {
	db, _ := sql.Open("sqlite", ":memory:")
	defer db.Close()
	db.SetMaxOpenConns(1)
	ctx := context.Background()
	_ = handlers.OnceTable(ctx, db)

	send := handlers.Typed(handlers.OnceFunc(db, func(ctx context.Context, tx *sql.Tx, inv Invoice) error {
		fmt.Println("invoice", inv.Number, "by task", handlers.FromContext(ctx).ID)
		return nil
	}))
	t := task.New("invoice.send", Invoice{Number: 42}, task.ID("inv-42"))
	fmt.Println(send.Handle(ctx, t), send.Handle(ctx, t))
	// Output:
	// invoice 42 by task inv-42
	// <nil> <nil>
}

func ExampleMux() {
	mux := handlers.NewMux()
	mux.Use(handlers.Log(zerolog.Nop()), handlers.Recover())
	_ = mux.Handle("sleep", handlers.Sleep())
	_ = mux.HandleFunc("greet", func(_ context.Context, t *task.Task) error {
		fmt.Printf("hello %s\n", t.Payload)
		return nil
	})
	fmt.Println(mux.Types())
	fmt.Println(mux.Serve(context.Background(), task.New("greet", []byte("world"))))
	fmt.Println(mux.Serve(context.Background(), task.New("part", nil)))
	fmt.Println(mux.Handle("greet", handlers.Sleep()))
	// Output:
	// [greet sleep]
	// hello world
	// <nil>
	// no handler for this type: "part"
	// type "greet": already has a handler (register each type once)
}

func ExampleMiddleware() {
	announce := func(next handlers.TaskHandler) handlers.TaskHandler {
		return handlers.Wrap(next, func(ctx context.Context, t *task.Task) error {
			fmt.Println("attempt", t.Attempt)
			return next.Handle(ctx, t)
		})
	}
	h := announce(handlers.Func(func(context.Context, *task.Task) error { return errors.New("not yet") }))
	fmt.Println(h.Handle(context.Background(), &task.Task{Attempt: 1}))
	// Output:
	// attempt 1
	// not yet
}

func ExampleRecover() {
	h := handlers.Recover()(handlers.Func(func(context.Context, *task.Task) error { panic("no such customer") }))
	err := h.Handle(context.Background(), &task.Task{})
	var p *handlers.PanicError
	fmt.Println(err, errors.As(err, &p), len(p.Stack) > 0)
	// Output:
	// panic: no such customer true true
}

func ExampleRetryAfter() {
	err := handlers.RetryAfter(errors.New("the bank is closed"), 8*time.Hour)
	fmt.Println(err)
	fmt.Println(handlers.RetryDelay(err))
	// Output:
	// the bank is closed
	// 8h0m0s true
}

func ExampleDead() {
	err := handlers.Dead(errors.New("no such customer"))
	fmt.Println(err, handlers.IsDead(err))
	// Output:
	// no such customer true
}

type report struct{}

func (report) Handle(context.Context, *task.Task) error { return nil }
func (report) Schedule() schedule.Rule                  { return schedule.Cron("0 2 * * *", time.UTC) }
func (report) Payload() any                             { return map[string]string{"day": "yesterday"} }

// A handler that says when it runs is found behind its middleware.
func ExampleScheduled() {
	h := handlers.Timeout(time.Minute)(report{})
	s, ok := handlers.As[handlers.Scheduled](h)
	fmt.Println(s.Schedule().Cron, ok)
	// Output:
	// 0 2 * * * true
}

func ExampleHTTP() {
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Println(r.Method, r.URL.Path, string(body), r.Header.Get("Onbeat-Slot"))
	}))
	defer shop.Close()
	h := handlers.HTTP(handlers.HTTPConfig{})
	defer h.(io.Closer).Close()

	slot := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	t := task.New("http", map[string]any{"url": shop.URL + "/warm", "body": map[string]int{"depth": 2}}, task.At(slot))
	fmt.Println(h.Handle(context.Background(), t))
	// Output:
	// POST /warm {"depth":2} 2026-01-02T03:04:05.000000000Z
	// <nil>
}

func ExamplePayloadChecker() {
	h, _ := handlers.As[handlers.PayloadChecker](handlers.HTTP(handlers.HTTPConfig{}))
	fmt.Println(h.CheckPayload([]byte(`{"url": "shop.example/warm"}`)))
	fmt.Println(h.CheckPayload([]byte(`{"url": "https://shop.example", "timeout": "5"}`)))
	// Output:
	// payload.url "shop.example/warm": has no scheme (an absolute URL such as https://shop.example/warm)
	// payload.timeout "5": not a duration above zero (such as "5s" or "1m30s")
}

func ExampleEcho() {
	h := handlers.Echo(zerolog.New(os.Stdout))
	_ = h.Handle(context.Background(), &task.Task{ID: "a", Attempt: 1, Payload: []byte(`{"n":1}`)})
	// Output:
	// {"level":"info","task":"a","attempt":1,"payload":{"n":1},"message":"echo"}
}

func ExampleSleep() {
	start := time.Now()
	err := handlers.Sleep().Handle(context.Background(), task.New("sleep", map[string]string{"for": "10ms"}))
	fmt.Println(err, time.Since(start) >= 10*time.Millisecond)
	// Output:
	// <nil> true
}
