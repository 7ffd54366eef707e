package doctor

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/wording"
)

// isEmpty reports whether onbeat never wrote to the namespace: each instance, task and schedule leaves a counter behind.
func (d *doctor) isEmpty(ctx context.Context) bool {
	n, err := d.node.HLen(ctx, d.q.Keys().Meta).Result()
	return err == nil && n == 0
}

// emptyHint returns the hint for an empty namespace. The user may have mistyped its name.
func (d *doctor) emptyHint(ctx context.Context) string {
	others := d.otherNamespaces(ctx)
	switch best := wording.Nearest(d.cfg.Namespace, others); {
	case best != "":
		return "did you mean " + best + "?"
	case len(others) > 0:
		return "is the name right? this Redis has " + some(others)
	}
	return "is the name right? if so, start an instance: onbeat serve"
}

// The search for other namespaces reads at most this many keys of each node, a page at a time.
const (
	searchedKeys = 5000
	searchedPage = 1000
)

// otherNamespaces returns the namespaces that a short search finds on this Redis. It returns none if the user may not SCAN.
func (d *doctor) otherNamespaces(ctx context.Context) []string {
	var mu sync.Mutex
	var names []string
	search := func(ctx context.Context, node *redis.Client) error {
		found := namespacesOn(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		names = append(names, found...)
		return nil // an error of one node does not stop the search of the others
	}
	if rdb, ok := d.cfg.Redis.(*redis.ClusterClient); ok {
		_ = rdb.ForEachMaster(ctx, search)
	} else {
		_ = search(ctx, d.node)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func namespacesOn(ctx context.Context, node *redis.Client) (names []string) {
	var cursor uint64
	for range searchedKeys / searchedPage {
		keys, next, err := node.Scan(ctx, cursor, "onbeat:{*}:meta", searchedPage).Result()
		if err != nil {
			return names
		}
		for _, key := range keys {
			name := strings.TrimSuffix(strings.TrimPrefix(key, "onbeat:{"), "}:meta")
			if (queue.Partition{Namespace: name}).Validate() == nil { // another program may use such a key
				names = append(names, name)
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	return names
}
