// Command once books invoices. A process may die at any moment, and its run is then repeated: the account is charged once all the same.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	_ "modernc.org/sqlite"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

type charge struct {
	Account string `json:"account"`
	Cents   int    `json:"cents"`
}

// book is the handler of charge: it writes within the transaction that also notes that this task has had its effect.
func book(db *sql.DB) handlers.TaskHandler {
	return handlers.Typed(handlers.OnceFunc(db, func(ctx context.Context, tx *sql.Tx, c charge) error {
		_, err := tx.ExecContext(ctx, `insert into accounts (name, cents) values ($1, $2) on conflict (name) do update set cents = cents + $2`, c.Account, c.Cents)
		return err
	}))
}

// open opens the database and makes its tables.
func open(ctx context.Context, file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, `create table if not exists accounts (name text primary key, cents integer)`)
	return db, errors.Join(err, handlers.OnceTable(ctx, db))
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	db, err := open(ctx, cmp.Or(os.Getenv("DATABASE"), "accounts.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	rdb, err := onbeat.Dial(cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379/0"))
	if err != nil {
		return err
	}
	defer rdb.Close()
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: "accounts"})
	if err != nil {
		return err
	}
	d.Handle("charge", book(db))
	_, err = d.Enqueue(ctx, task.New("charge", charge{"ann", 1000}), task.ID("invoice-42"))
	switch {
	case errors.Is(err, task.ErrDuplicate):
		fmt.Println("invoice-42 was enqueued before")
	case err != nil:
		return err
	}
	return d.Run(ctx)
}
