package admin

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
)

// Answers remembers what requests were answered that may be sent twice, such as those with an Idempotency-Key.
type Answers interface {
	// ClaimAnswer asks whether to go ahead with a request. The ID is what the caller chose for it, at most 128 bytes, and request is a
	// hash of what is asked, without spaces. The claim holds for a time; then another caller may go ahead.
	ClaimAnswer(ctx context.Context, id, request string, hold time.Duration) (AnswerClaim, error)
}

// AnswerClaim is the place of one caller among those that make the same request.
type AnswerClaim struct {
	// Asked is "claimed" (the caller is the first), "again" (an earlier caller went ahead and was lost), "running" (another caller has
	// gone ahead, and has no answer yet), "other" (another request was made under this ID) or "kept" (there is an answer).
	Asked string
	// Answer is the answer that was kept.
	Answer []byte
	// Settle keeps the answer of a caller that went ahead, or gives up the claim if there is none.
	Settle func(ctx context.Context, answer []byte) error
}

// answers are those of a namespace on Redis.
type answers struct{ q *queue.Queue }

func (a answers) ClaimAnswer(ctx context.Context, id, request string, hold time.Duration) (AnswerClaim, error) {
	c, err := a.q.ClaimAnswer(ctx, id, request, hold)
	return AnswerClaim{Asked: string(c.Asked), Answer: c.Answer, Settle: func(ctx context.Context, answer []byte) error {
		return a.q.SettleAnswer(ctx, c, answer)
	}}, err
}
