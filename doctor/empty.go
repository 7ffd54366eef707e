package doctor

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/queue"
)

// isEmpty reports whether nothing of onbeat was ever in the namespace: each instance, task and schedule leaves a counter.
func (d *doctor) isEmpty(ctx context.Context) bool {
	n, err := d.node.HLen(ctx, d.q.Keys().Meta).Result()
	return err == nil && n == 0
}

// emptyHint is what helps against an empty namespace. Its name may be mistyped.
func (d *doctor) emptyHint(ctx context.Context) string {
	others := d.otherNamespaces(ctx)
	switch best := wording.Nearest(d.cfg.Namespace, others); {
	case best != "":
		return "did you mean " + best + "?"
	case len(others) > 0:
		return "is the name right? on this Redis are " + some(others)
	}
	return "is the name right? if so, start an instance: onbeat serve"
}

// The search for other namespaces looks at so many keys of each node, a page at a time.
const (
	searchedKeys = 5000
	searchedPage = 1000
)

// otherNamespaces are those on this Redis, as far as a short search finds them; none if the user may not SCAN.
func (d *doctor) otherNamespaces(ctx context.Context) []string {
	var mu sync.Mutex
	var names []string
	search := func(ctx context.Context, node *redis.Client) error {
		found := namespacesOn(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		names = append(names, found...)
		return nil // the other nodes are searched all the same
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
			if (queue.Partition{Namespace: name}).Validate() == nil { // whatever else has such a key is no namespace
				names = append(names, name)
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	return names
}
