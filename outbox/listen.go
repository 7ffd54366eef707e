package outbox

import (
	"context"
	"time"
)

// listen has the database ring m.told when rows are added, until ctx ends; then it closes the channel that it returns. Without that,
// as behind a pooler that gives connections out by the transaction, the mover finds rows when it polls.
func (m *Mover) listen(ctx context.Context) <-chan struct{} {
	over := make(chan struct{})
	if m.db.Listen == nil {
		close(over)
		return over
	}
	go func() {
		defer close(over)
		for again := time.Second; ctx.Err() == nil; again = min(2*again, time.Minute) {
			m.db.Listen(ctx, func() {
				again = time.Second
				m.told.ring()
			})
			pause(ctx, again)
		}
	}()
	return over
}
