package testredis

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// clusterTimeout bounds each step of starting a cluster: six servers gossip, elect and synchronise, and a busy machine lets them
// wait for one another.
const clusterTimeout = 4 * startTimeout

// ClusterGroup is a Redis Cluster of three primaries with a replica each. It belongs to one test.
type ClusterGroup struct {
	Nodes []*Server // the first three began as primaries
}

// clusterSlots is how many hash slots every cluster has.
const clusterSlots = 16384

// Cluster starts a cluster and returns when every node reports that it is whole. A replica is promoted about two seconds
// after its primary is gone. Without a redis-server on PATH the test is skipped, or fails if ONBEAT_REQUIRE_REAL=1.
func Cluster(t testing.TB, args ...string) *ClusterGroup {
	t.Helper()
	needProgram(t)
	c := &ClusterGroup{}
	for range 6 {
		own := []string{"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "1000"}
		c.Nodes = append(c.Nodes, member(t, append(own, args...)...))
	}
	ctx := t.Context()
	ids := make([]string, len(c.Nodes))
	first, firstPort, _ := net.SplitHostPort(c.Nodes[0].Addr())
	for i, n := range c.Nodes {
		rdb := n.Client()
		id, err := rdb.ClusterMyID(ctx).Result()
		if err != nil {
			t.Fatal("testredis:", err)
		}
		ids[i] = id
		if i > 0 {
			must(t, rdb.ClusterMeet(ctx, first, firstPort).Err())
		}
		if i < 3 {
			must(t, rdb.ClusterAddSlotsRange(ctx, i*clusterSlots/3, (i+1)*clusterSlots/3-1).Err())
		}
	}
	for i, n := range c.Nodes {
		rdb := n.Client()
		Eventually(t, clusterTimeout, func() error {
			err := c.whole(ctx, rdb, "cluster_known_nodes:6")
			if err != nil && i > 0 {
				_ = rdb.ClusterMeet(ctx, first, firstPort).Err() // a handshake that a busy machine delays is forgotten
			}
			return err
		}, "node %d knows the others", i)
	}
	for i := 3; i < 6; i++ {
		rdb := c.Nodes[i].Client()
		Eventually(t, clusterTimeout, func() error { return rdb.ClusterReplicate(ctx, ids[i-3]).Err() }, "node %d becomes a replica", i)
	}
	for i, n := range c.Nodes {
		rdb := n.Client()
		Eventually(t, clusterTimeout, func() error {
			if i >= 3 {
				if err := follows(ctx, rdb); err != nil {
					return err
				}
			}
			return c.whole(ctx, rdb, "cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:6", "cluster_size:3")
		}, "node %d sees the cluster whole", i)
	}
	return c
}

func (c *ClusterGroup) whole(ctx context.Context, rdb *redis.Client, want ...string) error {
	info, err := rdb.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	for _, line := range want {
		if !strings.Contains(info, line) {
			return fmt.Errorf("no %s in %q", line, info)
		}
	}
	return nil
}

// URL is where onbeat connects.
func (c *ClusterGroup) URL() string {
	addrs := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		addrs[i] = n.Addr()
	}
	return "redis-cluster://" + strings.Join(addrs, ",")
}

// Owner returns the node that has a key. It asks a node that was not told to end, and waits while no node has the key, as in a failover.
func (c *ClusterGroup) Owner(t testing.TB, key string) *Server {
	t.Helper()
	ctx := t.Context()
	i := slices.IndexFunc(c.Nodes, func(n *Server) bool { return n.up })
	rdb := c.Nodes[i].Client()
	var owner *Server
	Eventually(t, clusterTimeout, func() error {
		slot, err := rdb.ClusterKeySlot(ctx, key).Result()
		if err != nil {
			return err
		}
		ranges, err := rdb.ClusterSlots(ctx).Result() //nolint:staticcheck // its replacement begins with Redis 7
		for _, r := range ranges {
			if int64(r.Start) <= slot && slot <= int64(r.End) && len(r.Nodes) > 0 {
				owner = c.at(t, r.Nodes[0].Addr)
				return nil
			}
		}
		return fmt.Errorf("slot %d is in none of %v: %w", slot, ranges, err)
	}, "nobody owns %s", key)
	return owner
}

func (c *ClusterGroup) at(t testing.TB, addr string) *Server {
	t.Helper()
	for _, n := range c.Nodes {
		if n.Addr() == addr {
			return n
		}
	}
	t.Fatalf("testredis: no node at %s", addr)
	return nil
}
