package testredis

import (
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Move moves a slot from one primary of a cluster to another.
type Move struct {
	Slot     int
	From, To *Server
	t        testing.TB
	c        *ClusterGroup
}

// BeginMove marks the slot of a key, as the first step of a resharding does: migrating on its primary, importing on
// another. No key has moved yet.
func (c *ClusterGroup) BeginMove(t testing.TB, key string) *Move {
	t.Helper()
	m := &Move{From: c.Owner(t, key), t: t, c: c}
	for _, n := range c.Nodes[:3] {
		if n != m.From && n.up {
			m.To = n
		}
	}
	slot, err := m.From.Client().ClusterKeySlot(t.Context(), key).Result()
	must(t, err)
	m.Slot = int(slot)
	m.set(m.To, "importing", m.From)
	m.set(m.From, "migrating", m.To)
	return m
}

// Keys moves these keys, or all keys of the slot if there are no arguments.
func (m *Move) Keys(keys ...string) {
	m.t.Helper()
	ctx, from := m.t.Context(), m.From.Client()
	host, port, _ := net.SplitHostPort(m.To.Addr())
	if len(keys) == 0 {
		var err error
		keys, err = from.ClusterGetKeysInSlot(ctx, m.Slot, 10_000).Result()
		must(m.t, err)
	}
	for _, k := range keys {
		must(m.t, from.Do(ctx, "migrate", host, port, k, 0, 5000).Err())
	}
}

// End tells all nodes that the slot is on its new primary. Call it when the last key has moved.
func (m *Move) End() {
	m.t.Helper()
	m.Keys()
	for _, n := range append([]*Server{m.To, m.From}, m.c.Nodes[:3]...) {
		if n.up {
			m.set(n, "node", m.To)
		}
	}
}

func (m *Move) set(on *Server, state string, of *Server) {
	m.t.Helper()
	id, err := of.Client().ClusterMyID(m.t.Context()).Result()
	must(m.t, err)
	must(m.t, on.Client(func(o *redis.Options) { o.PoolSize = 1 }).Do(m.t.Context(), "cluster", "setslot", m.Slot, state, id).Err())
}
