package outbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// listen has PostgreSQL ring m.told when rows are added, until ctx ends; then it closes the channel that it returns. It needs a
// connection of its own. Without one, as behind a pooler that gives connections out by the transaction, the mover finds rows when it
// polls.
func (m *Mover) listen(ctx context.Context) <-chan struct{} {
	over := make(chan struct{})
	if m.d != &postgres {
		close(over)
		return over
	}
	go func() {
		defer close(over)
		for again := time.Second; ctx.Err() == nil; again = min(2*again, time.Minute) {
			if m.hear(ctx) {
				again = time.Second
			}
			pause(ctx, again)
		}
	}()
	return over
}

// hear listens on one connection until that fails, and reports whether it ever listened.
func (m *Mover) hear(ctx context.Context) bool {
	cfg, err := m.cfg.pgx()
	if err != nil {
		return false
	}
	dial, done := context.WithTimeout(ctx, m.d.within)
	defer done()
	conn, err := pgx.ConnectConfig(dial, cfg)
	if err != nil {
		return false
	}
	defer func() {
		closing, done := context.WithTimeout(context.WithoutCancel(ctx), lastWait)
		defer done()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(dial, "LISTEN onbeat_outbox"); err != nil {
		return false
	}
	m.told.ring() // rows may have come before
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return true
		}
		m.told.ring()
	}
}
