package doctor

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

func (d *doctor) cluster(ctx context.Context) {
	rdb, speaks := d.cfg.Redis.(*redis.ClusterClient)
	on := d.info["cluster_enabled"] == "1" || speaks // the user may lack the right to INFO
	switch {
	case !on:
		return
	case !speaks:
		d.fail("cluster", "use redis-cluster://", "the URL names one node of a cluster")
		return
	}
	text, err := d.node.ClusterInfo(ctx).Result()
	at := d.node.Options().Addr
	var slot int64
	var move string
	if !d.bare {
		slot, move = d.move(ctx, rdb)
	}
	switch {
	case err != nil:
		d.warn("cluster", "", "CLUSTER INFO: %v", err)
	case !strings.Contains(text, "cluster_state:ok"):
		d.fail("cluster", "redis-cli --cluster check "+at+" shows what is missing", "the cluster is not ok")
	case move != "":
		d.moving = true
		d.fail("cluster", "it ends with the resharding; if no resharding runs, one was broken off: run redis-cli --cluster fix "+at,
			"slot %d, which holds the namespace, is being moved %s: until the move ends, the cluster refuses most of onbeat's calls", slot, move)
	case d.bare:
		d.ok("cluster", "ok; only its node %s is checked", at)
	case d.number > 0 && d.info["connected_slaves"] == "0" && d.wantsFullCoverage(ctx):
		d.warn("cluster", "redis-cli --cluster call "+at+" CONFIG SET cluster-require-full-coverage no, and the same in redis.conf; or give each primary a replica",
			"if a primary without a replica is away, the other nodes refuse all calls too, so no partition goes on: cluster-require-full-coverage is yes")
	default:
		d.ok("cluster", "ok; the namespace is on %s", at)
	}
}

// wantsFullCoverage reports whether the node serves nothing once a part of the cluster is away. A user who may not ask is not warned.
func (d *doctor) wantsFullCoverage(ctx context.Context) bool {
	const name = "cluster-require-full-coverage"
	settings, err := d.node.ConfigGet(ctx, name).Result()
	return err == nil && settings[name] == "yes"
}

// move returns the namespace's slot and, if the slot is being moved, from where to where. Each node knows only its own side of
// a move, and a move that was broken off may leave either side behind.
func (d *doctor) move(ctx context.Context, rdb *redis.ClusterClient) (slot int64, way string) {
	slot, err := d.node.ClusterKeySlot(ctx, d.q.Keys().Meta).Result()
	if err != nil {
		return 0, ""
	}
	var (
		mu       sync.Mutex
		from, to string
	)
	_ = rdb.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		ctx, done := context.WithTimeout(ctx, nodeTime)
		defer done()
		text, err := node.ClusterNodes(ctx).Result()
		if err != nil {
			return nil // the other nodes can still answer
		}
		source, target := moveIn(text, slot)
		mu.Lock()
		defer mu.Unlock()
		if source != "" {
			from = source
		}
		if target != "" {
			to = target
		}
		return nil
	})
	switch {
	case from != "" && to != "":
		return slot, fmt.Sprintf("from %s to %s", from, to)
	case from != "":
		return slot, "from " + from
	case to != "":
		return slot, "to " + to
	}
	return slot, ""
}

// moveIn reads from a node's CLUSTER NODES whether the node gives a slot away or takes it. It returns the addresses of both
// sides, as far as the node knows the other one.
func moveIn(text string, slot int64) (from, to string) {
	addrs, own, marks := map[string]string{}, "", []string(nil)
	for line := range strings.SplitSeq(text, "\n") {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		addr, _, _ := strings.Cut(f[1], "@")
		addrs[f[0]] = addr
		if strings.Contains(f[2], "myself") {
			own, marks = addr, f
		}
	}
	for _, mark := range marks {
		if id, ok := strings.CutPrefix(mark, fmt.Sprintf("[%d->-", slot)); ok {
			return own, addrs[strings.TrimSuffix(id, "]")]
		}
		if id, ok := strings.CutPrefix(mark, fmt.Sprintf("[%d-<-", slot)); ok {
			return addrs[strings.TrimSuffix(id, "]")], own
		}
	}
	return "", ""
}
