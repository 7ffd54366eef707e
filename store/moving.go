package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// While a slot of a cluster is moved, each node has some of its keys. A script that declares a key that the node does not
// have is refused with TRYAGAIN before it runs: nothing was done, so it may be asked for again. That ends when the last
// key has moved, or, where a move was broken off, when somebody ends it.
const (
	movingFirst = 5 * time.Millisecond
	movingMost  = 50 * time.Millisecond
	movingTime  = time.Second // then whoever asked is told why, and asks again if it can wait
)

// untilMoved asks until the answer is another than TRYAGAIN, or too long.
func untilMoved(ctx context.Context, ask func() (any, error)) (any, error) {
	end := time.Now().Add(movingTime)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	for pause := movingFirst; ; pause = min(2*pause, movingMost) {
		v, err := ask()
		if err == nil || !redis.HasErrorPrefix(err, "TRYAGAIN") {
			return v, err
		}
		if time.Until(end) <= pause {
			return v, fmt.Errorf("%w: the cluster is moving a slot, and neither node has all of its keys", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return v, err
		}
	}
}

// OfMove reports whether an [ErrBusy] is of a slot that is on its way from one node of a cluster to another. It ends by
// itself when the slot has arrived, and not at all if the move was broken off.
func OfMove(err error) bool {
	return err != nil && (redis.HasErrorPrefix(err, "TRYAGAIN") || redis.HasErrorPrefix(err, "ASK ") || strings.Contains(err.Error(), awayInScript))
}

// awayInScript is what Redis answers if a script uses a key that its node has no more: the last entry of it was removed by
// the script itself while the slot is moved. What the script had done is taken back, as for any refusal.
const awayInScript = "Script attempted to access a non local key"
