package instance

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// Keys are looked at once a second at most. A key that is written over in between ends no instance: the instance tries again.
func TestMend_ofALittleAgoEndsNobody(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	r := rigOf(t, srv.Client(), "ns")
	n := r.node(Config{Lease: 2 * time.Second})
	s := n.session()
	k := r.q.Keys()
	for range 5 { // twice within a second, and the instance out of the registry: it has to join
		must(t, r.rdb.Set(t.Context(), k.Members, "not ours", 0).Err())
		testredis.Eventually(t, testTimeout, func() bool { return r.rdb.Type(t.Context(), k.Members).Val() != "string" }, "it is set aside")
		must(t, r.rdb.Set(t.Context(), k.Members, "not ours", 0).Err())
		must(t, r.rdb.Set(t.Context(), k.Instances, "not ours", 0).Err())
		testredis.Eventually(t, testTimeout, func() bool { return r.rdb.HExists(t.Context(), k.Members, s.ID).Val() }, "it is registered again")
	}
	must(t, n.leave())
}
