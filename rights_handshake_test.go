package onbeat_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

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
