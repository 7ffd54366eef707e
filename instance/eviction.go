package instance

import (
	"context"
	"strings"

	"github.com/onbeat/onbeat/internal/store"
)

// warnOfEviction logs a warning if Redis is set up to drop keys when it is full. It asks INFO, which is allowed in more
// places than CONFIG. Where INFO is denied too, it logs nothing; `onbeat doctor` reports that.
func (m *Manager) warnOfEviction(ctx context.Context) {
	ctx, done := context.WithTimeout(ctx, m.cfg.Lease)
	defer done()
	policy := m.policy(ctx)
	if policy == "" || policy == "noeviction" {
		return
	}
	m.log.Error().Str("policy", policy).
		Msg("redis may drop keys, and with them tasks and schedules: set maxmemory-policy noeviction")
}

// policy returns the maxmemory-policy of the node that holds the partition, or "" if the node does not tell.
func (m *Manager) policy(ctx context.Context) string {
	node := store.Node(ctx, m.rdb, m.reg.keys.Meta)
	if node == nil {
		return ""
	}
	text, err := store.Within(ctx, func() (string, error) { return node.Info(ctx, "memory").Result() })
	if err != nil {
		return ""
	}
	for line := range strings.SplitSeq(text, "\n") {
		if policy, ok := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:"); ok {
			return policy
		}
	}
	return ""
}
