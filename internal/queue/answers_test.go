package queue_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

func (w *world) ask(id, request string, hold time.Duration) queue.AnswerClaim {
	w.Helper()
	c, err := w.q.ClaimAnswer(w.Context(), id, request, hold)
	w.must(err)
	return c
}

func TestAnswer_isGivenToTheSameRequest(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		first := w.ask("a", "x", time.Minute)
		same(t, "the first", first.Asked, queue.AnswerClaimed)
		if c := w.ask("a", "x", time.Minute); c.Asked != queue.AnswerRunning || c.Wait <= 0 || c.Wait > time.Minute {
			t.Errorf("while it runs: %+v", c)
		}
		same(t, "another request", w.ask("a", "y", time.Minute).Asked, queue.AnswerOther)
		same(t, "another ID", w.ask("b", "y", time.Minute).Asked, queue.AnswerClaimed)
		answer := "201 \n\x00 k é"
		w.must(w.q.SettleAnswer(t.Context(), first, []byte(answer)))
		if c := w.ask("a", "x", time.Minute); c.Asked != queue.AnswerKept || string(c.Answer) != answer {
			t.Errorf("then: %+v", c)
		}
		same(t, "another request then", w.ask("a", "y", time.Minute).Asked, queue.AnswerOther)
		if err := w.q.SettleAnswer(t.Context(), first, make([]byte, queue.MaxAnswer+1)); err == nil {
			t.Error("an answer that is too large is kept")
		}
	})
}

// A caller that was lost keeps its claim until the claim ends. A later answer of that caller changes nothing.
func TestAnswer_ofACallerThatWasLost(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		lost := w.ask("a", "x", 0)
		again := w.ask("a", "x", time.Minute)
		same(t, "the next", again.Asked, queue.AnswerAgain)
		w.must(w.q.SettleAnswer(t.Context(), lost, []byte("late")))
		w.must(w.q.SettleAnswer(t.Context(), lost, nil))
		same(t, "after the late answer", w.ask("a", "x", time.Minute).Asked, queue.AnswerRunning)
		w.must(w.q.SettleAnswer(t.Context(), again, nil))
		same(t, "after it was given up", w.ask("a", "x", time.Minute).Asked, queue.AnswerClaimed)
	})
}

func TestAnswer_isKeptForADayAndWithinItsCap(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		ctx := t.Context()
		for i := range 30 {
			c := w.ask(strconv.Itoa(i), "x", time.Minute)
			w.must(w.q.SettleAnswer(ctx, c, []byte(strings.Repeat("a", 1000))))
		}
		day := float64(w.now().Add(-queue.AnswersKept).UnixMilli())
		for i := range 25 {
			w.must(rdb.ZAdd(ctx, w.keys.Answered, redis.Z{Score: day, Member: strconv.Itoa(i)}).Err())
		}
		same(t, "after a day", w.ask("3", "other", time.Minute).Asked, queue.AnswerClaimed)
		same(t, "another", w.ask("new", "x", time.Minute).Asked, queue.AnswerClaimed)
		same(t, "those that are kept", rdb.ZCard(ctx, w.keys.Answered).Val(), 7)
		same(t, "their answers", rdb.HLen(ctx, w.keys.Answers).Val(), 8)
		total := 0
		for id, record := range rdb.HGetAll(ctx, w.keys.Answers).Val() {
			if id != "" {
				total += len(record)
			}
		}
		same(t, "their bytes", rdb.HGet(ctx, w.keys.Answers, "").Val(), strconv.Itoa(total))
		w.must(rdb.HSet(ctx, w.keys.Answers, "", 65<<20).Err())
		w.ask("full", "x", time.Minute)
		same(t, "those that are kept when there are too many bytes", rdb.ZCard(ctx, w.keys.Answered).Val(), 1)
		if left := rdb.PTTL(ctx, w.keys.Answers).Val(); left <= 0 || left > queue.AnswersKept {
			t.Errorf("the answers expire in %v", left)
		}
	})
}

func TestAnswer_aDamagedRecordCountsAsNone(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		for _, record := range []string{"", "x", "x r", "x r a", "x r a b", "x q a 1", " k "} {
			w.must(rdb.HSet(t.Context(), w.keys.Answers, "a", record, "", "damaged").Err())
			w.must(rdb.ZAdd(t.Context(), w.keys.Answered, redis.Z{Score: float64(w.now().UnixMilli()), Member: "a"}).Err())
			if c := w.ask("a", "x", time.Minute); c.Asked != queue.AnswerAgain {
				t.Errorf("%q: %+v", record, c)
			}
		}
	})
}

// twice sends each script two times, as a client does that gets no reply to the first.
type twice struct{}

func (twice) DialHook(next redis.DialHook) redis.DialHook { return next }
func (twice) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (twice) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			_ = next(ctx, cmd)
		}
		return next(ctx, cmd)
	}
}

func TestAnswer_whoseFirstReplyIsLost_isClaimedByTheSameCaller(t *testing.T) {
	t.Parallel()
	rdb := testredis.Mini(t).Client
	rdb.AddHook(twice{})
	w := newWorld(t, rdb)
	if c := w.ask("a", "x", time.Minute); c.Asked == queue.AnswerRunning {
		t.Errorf("%+v: it waits for itself", c)
	}
}
