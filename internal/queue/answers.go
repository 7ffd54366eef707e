package queue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

var (
	answerClaimScript  = store.NewScript("answer_claim", store.Careful, source("answer_claim"))
	answerSettleScript = store.NewScript("answer_settle", store.Careful, source("answer_settle"))
)

const (
	// AnswersKept is how long the answer of a request is kept.
	AnswersKept = 24 * time.Hour
	// MaxAnswer is the largest answer that is kept, in bytes.
	MaxAnswer = 256 << 10

	answersCap   = 100_000
	answersBytes = 64 << 20
)

// Asked is the finding of [Queue.ClaimAnswer] about a request: one of five.
type Asked string

// The findings about a request.
const (
	AnswerClaimed Asked = "claimed" // this caller is the first, and goes ahead
	AnswerAgain   Asked = "again"   // an earlier caller went ahead and was lost, or this one did and got no reply: the outcome is not known
	AnswerRunning Asked = "running" // another caller has gone ahead, and has no answer yet
	AnswerOther   Asked = "other"   // another request was made under this ID
	AnswerKept    Asked = "kept"    // another caller has the answer
)

// AnswerClaim is the place of one caller among those that make the same request.
type AnswerClaim struct {
	Asked  Asked
	Answer []byte        // of [AnswerKept]
	Wait   time.Duration // of [AnswerRunning]: how long the other's claim holds at most

	id, request, claimant string
}

// ClaimAnswer asks whether to go ahead with a request. The ID is what the caller chose for it, at most 128 bytes, and request
// is a hash of what is asked, without spaces. The claim holds for a time; then another caller may go ahead. A caller that
// went ahead calls [Queue.SettleAnswer].
func (q *Queue) ClaimAnswer(ctx context.Context, id, request string, hold time.Duration) (AnswerClaim, error) {
	c := AnswerClaim{id: id, request: request, claimant: uuid.NewString()}
	v, err := answerClaimScript.Run(ctx, q.rdb, []string{q.keys.Answers, q.keys.Answered}, []any{
		id, request, c.claimant, hold.Milliseconds(), AnswersKept.Milliseconds(), answersCap, answersBytes,
	})
	if err != nil {
		return c, fmt.Errorf("look for the answer of a request: %w", err)
	}
	r := store.NewReply(v)
	r.Int()
	switch c.Asked = Asked(r.Text()); c.Asked {
	case AnswerKept:
		answer, err := q.openAnswer(&c, r.Text())
		if err != nil {
			return c, err
		}
		c.Answer = answer
	case AnswerRunning:
		c.Wait = time.Duration(r.Int()) * time.Millisecond
	}
	return c, r.Err
}

// sealedAnswer begins an answer that is encrypted. No answer of HTTP begins so.
const sealedAnswer = "\x00"

// sealAnswer encrypts an answer if a key seals: it may have payloads in it.
func (q *Queue) sealAnswer(c *AnswerClaim, answer []byte) []byte {
	box := q.seal.Seal(seal.Answer(c.id, c.request), answer, nil)
	if box == nil {
		return answer
	}
	return box.Append([]byte(sealedAnswer))
}

// openAnswer decrypts an answer that sealAnswer encrypted. Without its key this process cannot tell the answer.
func (q *Queue) openAnswer(c *AnswerClaim, text string) ([]byte, error) {
	sealed, ok := strings.CutPrefix(text, sealedAnswer)
	if !ok {
		return []byte(text), nil
	}
	box := task.ParseSealed(sealed)
	if box == nil {
		return nil, fmt.Errorf("the answer that is kept: %w", task.ErrDamaged)
	}
	answer, _, err := q.seal.Open(seal.Answer(c.id, c.request), box)
	if err != nil {
		return nil, fmt.Errorf("the answer that is kept: %w", err)
	}
	return answer, nil
}

// SettleAnswer keeps the answer of a request that this caller claimed, or gives up the claim if the answer is empty: then the
// next caller goes ahead. It does nothing if the claim has ended, and another caller went ahead. It refuses an answer over
// [MaxAnswer]. The answer is encrypted if payloads are.
func (q *Queue) SettleAnswer(ctx context.Context, c AnswerClaim, answer []byte) error {
	if len(answer) > MaxAnswer {
		return fmt.Errorf("keep the answer of a request: %d bytes, and at most %d are kept", len(answer), MaxAnswer)
	}
	_, err := answerSettleScript.Run(ctx, q.rdb, []string{q.keys.Answers, q.keys.Answered}, []any{
		c.id, c.request, c.claimant, q.sealAnswer(&c, answer), AnswersKept.Milliseconds(),
	})
	if err != nil {
		return fmt.Errorf("keep the answer of a request: %w", err)
	}
	return nil
}
