package sqloutbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// How long it may take to begin to listen, and to say goodbye.
const (
	beginTime = 20 * time.Second
	closeTime = 2 * time.Second
)

// listener returns what listens for rows of the table, on a connection of its own.
func listener(cfg *pgx.ConnConfig) func(ctx context.Context, told func()) {
	return func(ctx context.Context, told func()) {
		dial, done := context.WithTimeout(ctx, beginTime)
		defer done()
		conn, err := pgx.ConnectConfig(dial, cfg)
		if err != nil {
			return
		}
		defer func() {
			closing, done := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
			defer done()
			_ = conn.Close(closing)
		}()
		if _, err := conn.Exec(dial, "LISTEN onbeat_outbox"); err != nil {
			return
		}
		for err == nil {
			told()
			_, err = conn.WaitForNotification(ctx)
		}
	}
}
