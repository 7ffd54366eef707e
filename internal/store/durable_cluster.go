package store

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ofCluster is the part of a cluster client that [durable] uses.
type ofCluster interface {
	MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	ForEachMaster(ctx context.Context, fn func(ctx context.Context, node *redis.Client) error) error
}

// pipeline is what [durable] uses of a redis.Pipeliner.
type pipeline interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Exec(ctx context.Context) ([]redis.Cmder, error)
}

// following is a pipeline to one node of a cluster. If the slot of its first command moves, the pipeline follows it. The
// cluster client does the same for its own pipelines, but there WAIT would go to another node.
type following struct {
	cluster ofCluster
	node    *redis.Client
	key     string
	cmds    []redis.Cmder
}

// mostFollowed is how often a pipeline follows its slot. pausePerReload is how long the client first has to learn which node
// has the slot now; the pause doubles each time.
const (
	mostFollowed   = 4
	pausePerReload = 25 * time.Millisecond
)

func (f *following) Process(_ context.Context, cmd redis.Cmder) error {
	f.cmds = append(f.cmds, cmd)
	return nil
}

// Exec sends the commands to one node. If that node refuses because another node has the slot, it has done nothing, and Exec
// sends the commands to the other one.
func (f *following) Exec(ctx context.Context) ([]redis.Cmder, error) {
	for node, asking, n := f.node, false, 0; ; n++ {
		pipe := node.Pipeline()
		if asking {
			_ = pipe.Do(ctx, "asking")
		}
		for _, c := range f.cmds {
			_ = pipe.Process(ctx, c)
		}
		_, err := pipe.Exec(ctx)
		first := f.cmds[0].Err()
		if first == nil || n == mostFollowed || !redis.HasErrorPrefix(first, "MOVED ") && !redis.HasErrorPrefix(first, "ASK ") {
			return f.cmds, err
		}
		said := strings.Fields(first.Error())
		asking = said[0] == "ASK"
		next := f.at(ctx, said[len(said)-1])
		if next == nil { // a node that the client does not know yet
			reloadState(ctx, f.cluster)
			select {
			case <-time.After(pausePerReload << n):
			case <-ctx.Done():
				return f.cmds, err
			}
			if next, _ = f.cluster.MasterForKey(ctx, f.key); next == nil {
				return f.cmds, err
			}
			asking = false
		}
		if !asking {
			reloadState(ctx, f.cluster)
		}
		node = next
	}
}

// at returns the client of the primary with an address, or nil.
func (f *following) at(ctx context.Context, addr string) *redis.Client {
	found := make(chan *redis.Client, 1)
	_ = f.cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		if node.Options().Addr == addr {
			select {
			case found <- node:
			default:
			}
		}
		return nil
	})
	select {
	case node := <-found:
		return node
	default:
		return nil
	}
}
