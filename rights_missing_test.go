package onbeat_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/testredis"
)

// What a client says as it connects may be refused too. Then no command is tried, and that one is named.
func TestRights_ofTheConnectionAreNamed(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	for _, role := range []queue.Role{queue.AsInstance, queue.AsProducer, queue.AsReader} {
		p := queue.Partition{Namespace: testredis.Namespace(t)}
		all := strings.Fields(queue.ACL(role, p, true))
		nameless := slices.DeleteFunc(slices.Clone(all), func(r string) bool { return r == "+client|setname" })
		for want, rdb := range map[string]*redis.Client{
			"+client|setname": testredis.User(t, admin, nameless, func(o *redis.Options) { o.ClientName = "onbeat" }),
			"+select":         testredis.User(t, admin, all, func(o *redis.Options) { o.DB = 3 }),
		} {
			q, err := queue.New(rdb, p, queue.Caps{})
			must(t, err)
			missing, err := q.Missing(t.Context(), role, true)
			if err != nil || !slices.Equal(missing, []string{want}) {
				t.Errorf("%s without %s: %v, %v", role, want, missing, err)
			}
		}
	}
}

// A right that is taken away while an instance runs ends it when its lease is over, with the name of the right.
func TestRun_namesARightThatIsTakenAway(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	for _, right := range []string{"+zadd", "+hset", "~"} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			p := queue.Partition{Namespace: testredis.Namespace(t)}
			rdb := testredis.User(t, admin, strings.Fields(queue.ACL(queue.AsInstance, p, false)))
			d := dispatcher(t, rdb, onbeat.Config{Namespace: p.Namespace, Lease: time.Second})
			over := make(chan error, 1)
			go func() { over <- d.Run(t.Context()) }()
			testredis.Eventually(t, patience, func() bool {
				return admin.HGet(t.Context(), p.Keys().Leader, "id").Val() != ""
			}, "it leads")
			change, want := "-"+right[1:], right
			if right == "~" {
				change, want = "resetkeys", "~"+p.Prefix()+"*"
			}
			must(t, admin.Do(t.Context(), "ACL", "SETUSER", rdb.Options().Username, change).Err())
			select {
			case err := <-over:
				if !errors.Is(err, queue.ErrDenied) || !strings.Contains(err.Error(), "the user lacks "+want+"; docs/rights.md") {
					t.Errorf("%v does not name %s", err, want)
				}
			case <-time.After(patience):
				t.Error("it has not ended")
			}
		})
	}
}
