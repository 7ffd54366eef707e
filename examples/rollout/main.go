// Command rollout inserts a row into PostgreSQL at each slot of a schedule. Start a new release beside the old one, and stop the old one: the
// rows show no rollout.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

const table = `create table if not exists beats (slot timestamptz, release text, attempt int, at timestamptz default clock_timestamp())`

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
	every, err := time.ParseDuration(cmp.Or(os.Getenv("EVERY"), "1m"))
	if err != nil {
		return err
	}
	db, err := sql.Open("pgx", cmp.Or(os.Getenv("DATABASE_URL"), "postgres://127.0.0.1:5432/postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, table); err != nil {
		return err
	}
	rdb, err := onbeat.Dial(cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379/0"))
	if err != nil {
		return err
	}
	defer rdb.Close()
	release := os.Getenv("RELEASE")
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: "rows", Release: release})
	if err != nil {
		return err
	}
	d.Handle("row", handlers.Func(func(ctx context.Context, t *task.Task) error {
		_, err := db.ExecContext(ctx, "insert into beats (slot, release, attempt) values ($1, $2, $3)", t.Slot, t.Release, t.Attempt)
		if err == nil {
			fmt.Println(release, "wrote the row of", t.Slot.Format(time.TimeOnly))
		}
		return err
	}))
	d.Schedule("row", schedule.Every(every), "row", nil)
	return d.Run(ctx)
}
