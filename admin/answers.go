package admin

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
)

// Answers remembers what requests were answered that may be sent twice, such as those with an Idempotency-Key.
type Answers interface {
	// ClaimAnswer asks whether to go ahead with a request; see [queue.Queue.ClaimAnswer].
	ClaimAnswer(ctx context.Context, id, request string, hold time.Duration) (queue.AnswerClaim, error)
	// SettleAnswer keeps the answer of a request, or gives up the claim; see [queue.Queue.SettleAnswer].
	SettleAnswer(ctx context.Context, c queue.AnswerClaim, answer []byte) error
}
