package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// While a cluster moves a slot from one node to another, each of the two nodes has some of its keys. A node refuses a script
// that declares a key which the node does not have. It refuses with TRYAGAIN before the script runs, so the client may send
// the script again. This ends when the last key has moved. If the move was broken off, it ends when a person repairs it.
const (
	movingFirst = 5 * time.Millisecond
	movingMost  = 50 * time.Millisecond
	movingTime  = time.Second // then the caller gets the error, and tries again if it can wait
)

// untilMoved calls ask until it returns something else than TRYAGAIN, or until movingTime is over.
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
		err = fmt.Errorf("%w: the cluster is moving a slot, and neither node has all of its keys", err)
		if time.Until(end) <= pause {
			return v, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return v, err
		}
	}
}

// OfMove reports whether an [task.ErrBusy] comes from a slot that moves from one node of a cluster to another. The error ends by
// itself when the slot has arrived. If the move was broken off, it does not end by itself.
func OfMove(err error) bool {
	return err != nil && (redis.HasErrorPrefix(err, "TRYAGAIN") || redis.HasErrorPrefix(err, "ASK ") || strings.Contains(err.Error(), awayInScript))
}

// awayInScript is what Redis says if a script uses a key that its node does not have any more. It happens while a slot moves,
// when the script itself has removed the key's last entry. As with any refusal, the script takes back what it had done.
const awayInScript = "Script attempted to access a non local key"
