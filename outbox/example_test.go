package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/embedded"
	"github.com/onbeat/onbeat/outbox"
	"github.com/onbeat/onbeat/task"
)

func Example() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	// A Redis and a database for the example.
	server, err := embedded.Start(ctx, embedded.Options{InProcess: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	rdb, _ := onbeat.Dial(server.URL())
	defer rdb.Close()
	dir, _ := os.MkdirTemp("", "shop")
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "shop.db")
	db, _ := sql.Open("sqlite", file)
	defer db.Close()

	_, _ = db.ExecContext(ctx, "CREATE TABLE orders (number TEXT)")
	if err := outbox.Migrate(ctx, db); err != nil {
		fmt.Println(err)
		return
	}
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: "shop", Release: "v42", Outbox: outbox.SQL{URL: "sqlite://" + file, Poll: 50 * time.Millisecond}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = d.Handle("order.confirm", handlers.Typed(func(_ context.Context, number string) error {
		fmt.Println("confirmed", number)
		stop()
		return nil
	}))

	order := func(number string, paid bool) {
		tx, _ := db.BeginTx(ctx, nil)
		defer tx.Rollback()
		_, _ = tx.ExecContext(ctx, "INSERT INTO orders VALUES ($1)", number)
		if err := d.Outbox().Add(ctx, tx, task.New("order.confirm", number)); err != nil {
			fmt.Println(err)
		}
		if paid {
			_ = tx.Commit()
		}
	}
	order("A1", false) // neither the order is there, nor its task
	order("A2", true)
	fmt.Println("ran:", d.Run(ctx))
	// Output:
	// confirmed A2
	// ran: <nil>
}
