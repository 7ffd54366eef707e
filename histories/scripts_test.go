package histories

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/testredis"
)

// lockTime is the lease of these locks. It is short, so that many leases run out in a run.
const lockTime = 60 * time.Millisecond

// The scripts of a lock: contenders take it, extend it, pause for longer than its lease, and release a lock that they have,
// or once had.
func TestLockScripts_areLinearizable(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.hold("the scripts of locks", size(1, 60), scriptsRun, scriptsSpec.model())
}

func scriptsRun(s *stage) *history {
	s.Helper()
	h := newHistory()
	ns := testredis.Namespace(s)
	var tokens atomic.Int64
	var all [crowd]*contender
	for i := range all {
		all[i] = &contender{h: h, who: i, rdb: s.client(), ns: ns, tokens: &tokens, mine: map[string][]int{}}
	}
	s.run(time.Second, true, crowd, func(ctx context.Context, i int, r *rand.Rand) { all[i].live(ctx, r) })
	return h
}

// contender calls the scripts of some locks directly, with one token after the other.
type contender struct {
	h      *history
	who    int
	rdb    *redis.Client
	ns     string
	tokens *atomic.Int64
	mine   map[string][]int // the tokens it used for a lock, the last one last
}

func (c *contender) live(ctx context.Context, r *rand.Rand) {
	for pause(ctx, rand.N(10*time.Millisecond)) {
		if r.IntN(40) == 0 && !pause(ctx, lockTime/2+rand.N(lockTime)) {
			return
		}
		lock := fmt.Sprint("l", r.IntN(2))
		list := c.mine[lock]
		if len(list) == 0 || r.IntN(8) == 0 {
			list = append(list, int(c.tokens.Add(1)))
			c.mine[lock] = list
		}
		token := list[len(list)-1]
		if r.IntN(5) == 0 {
			token = list[max(0, len(list)-1-r.IntN(4))]
		}
		c.do([]string{"acquire", "acquire", "extend", "extend", "release"}[r.IntN(5)], lock, token)
	}
}

// do calls one script, as lock/node.go does.
func (c *contender) do(op, lock string, token int) {
	x := "onbeat:{" + c.ns + "|" + lock + "}:"
	ttl := lockTime.Milliseconds()
	keys, args := []string{x + "lock", x + "fence"}, []any{token, ttl, 0, 0, 0}
	switch op {
	case "acquire":
		keys, args = append(keys, x+"wait"), []any{token, ttl, ttl, "", 5}
	case "release":
		keys, args = []string{x + "lock", x + "wait"}, []any{token, 0, x + "wake:", 0}
	}
	var v any
	a := c.h.ask(c.who, func() (err error) {
		v, err = script("lock/"+op).Run(context.Background(), c.rdb, keys, args)
		return err
	})
	said := lockSaid{lost: a.fate == lost}
	if n := numbers(v); a.ok() {
		said.ok = n[0] == 1
		switch {
		case op == "acquire" && said.ok:
			said.fence, said.now = n[1], n[2]
		case op == "extend":
			said.now = n[1]
		}
	}
	a.wrote(lockAsk{op: op, lock: lock, token: token}, said)
}

func script(name string) *store.Script {
	all := store.Scripts()
	return all[slices.IndexFunc(all, func(s *store.Script) bool { return s.Name == name })]
}

// numbers returns the values of a reply.
func numbers(v any) []int64 {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	out := make([]int64, len(list))
	for i, v := range list {
		out[i], _ = strconv.ParseInt(fmt.Sprint(v), 10, 64)
	}
	return out
}
