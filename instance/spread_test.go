package instance

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// parts are the partitions of one namespace.
type parts []*rig

func newParts(t *testing.T, rdb *redis.Client, n int) (list parts) {
	t.Helper()
	ns := testredis.Namespace(t)
	for i := range n {
		list = append(list, rigIn(t, rdb, queue.Partition{Namespace: ns, Number: i + 1}))
	}
	return list
}

// up makes an instance ready in every partition.
func (p parts) up(id, release string, changes ...change) (list []member) {
	for _, r := range p {
		list = append(list, r.up(id, release, changes...))
	}
	return list
}

// leaders returns who leads each partition.
func (p parts) leaders() (list []string) {
	for _, r := range p {
		id, _, _ := r.lead()
		list = append(list, id)
	}
	return list
}

func count(list []string) map[string]int {
	n := map[string]int{}
	for _, id := range list {
		n[id]++
	}
	return n
}

// The instances of a release lead equal shares of the partitions, and each that joins or leaves moves its own share alone.
func TestRank_aReleaseSharesThePartitions(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		const n = 64
		p := newParts(t, rdb, n)
		for i := range 3 {
			p.up(fmt.Sprint("i", i), "v1")
		}
		three := p.leaders()
		for id, led := range count(three) {
			if led < n/3/2 || led > n/3*2 {
				t.Errorf("%s leads %d of %d", id, led, n)
			}
		}
		fourth := p.up("i3", "v1")
		four := p.leaders()
		for i := range four {
			if four[i] != three[i] && four[i] != "i3" {
				t.Errorf("partition %d moved from %s to %s, which was there before", i+1, three[i], four[i])
			}
		}
		if led := count(four)["i3"]; led < n/4/2 || led > n/4*2 {
			t.Errorf("the one that joined leads %d of %d", led, n)
		}
		for i, r := range p {
			r.leave(fourth[i])
		}
		if got := p.leaders(); fmt.Sprint(got) != fmt.Sprint(three) {
			t.Errorf("%v after it left, %v before it joined", got, three)
		}
	})
}

func TestRank_theNewestReleaseLeadsEveryPartition(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		p := newParts(t, rdb, 16)
		for i := range 3 {
			p.up(fmt.Sprint("old", i), "v1")
		}
		p.up("new", "v2")
		if got := count(p.leaders()); got["new"] != 16 {
			t.Errorf("%v", got)
		}
	})
}

func TestRank_stickyMovesNoPartition(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		p := newParts(t, rdb, 16)
		p.up("a", "v1", sticky)
		p.up("b", "v1", sticky)
		if got := count(p.leaders()); got["a"] != 16 {
			t.Errorf("%v", got)
		}
	})
}
