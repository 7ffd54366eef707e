package testredis

import "testing"

// Part cuts the replicas off from the primary, which goes on: writes from now on are lost with it. The sentinels
// still reach all servers, so they notice nothing. [SentinelGroup.Join] ends it.
func (g *SentinelGroup) Part(t testing.TB) {
	t.Helper()
	for _, r := range g.Replicas {
		rdb := r.Client()
		must(t, rdb.ConfigSet(t.Context(), "masterauth", "the wrong one").Err()) // so that it cannot reconnect
		must(t, rdb.Do(t.Context(), "client", "kill", "type", "master").Err())
		Eventually(t, startTimeout, func() bool { return follows(t.Context(), rdb) != nil }, "the replica at %s is cut off", r.Addr())
	}
}

// Join lets the replicas follow a primary again.
func (g *SentinelGroup) Join(t testing.TB) {
	t.Helper()
	for _, r := range g.Replicas {
		must(t, r.Client().ConfigSet(t.Context(), "masterauth", "").Err())
	}
}

// Minority returns the URL for an instance on the wrong side of [SentinelGroup.Split]: it has only one sentinel.
func (g *SentinelGroup) Minority() string { return sentinelURL(g.addrs[0]) }

// Split divides the group. The primary goes on for all clients that connect to it, but no replica and no sentinel reaches
// it, and the sentinel of [SentinelGroup.Minority] answers no one. Split returns when the other two sentinels name another
// primary. The returned function heals the network: the sentinels then make the old primary a replica.
func (g *SentinelGroup) Split(t testing.TB) (heal func()) {
	t.Helper()
	old := g.Led(t)
	rights := func(watch, others string) {
		t.Helper()
		rdb := old.Client()
		must(t, rdb.Do(t.Context(), "acl", "setuser", watcher, watch).Err())
		must(t, rdb.Do(t.Context(), "acl", "setuser", "default", others+"psync", others+"sync").Err())
	}
	must(t, pause(g.processes[0]))
	rights("-@all", "-")
	must(t, old.Client().Do(t.Context(), "client", "kill", "type", "replica").Err())
	Eventually(t, 4*startTimeout, func() bool {
		addr := g.names(t, 1)
		return addr != old.Addr() && g.names(t, 2) == addr
	}, "the other side promotes a replica")
	return func() {
		t.Helper()
		must(t, resume(g.processes[0]))
		rights("+@all", "+")
	}
}
