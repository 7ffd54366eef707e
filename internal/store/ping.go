package store

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Ping reports whether Redis answers: of a cluster, whether any primary does.
func Ping(ctx context.Context, rdb redis.UniversalClient) error {
	cluster, ok := Plain(rdb).(*redis.ClusterClient)
	if !ok {
		return rdb.Ping(ctx).Err()
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	answers := make(chan error, 2)
	go func() {
		answers <- cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			err := node.Ping(ctx).Err()
			if err == nil {
				select {
				case answers <- nil:
				default: // another one was faster
				}
			}
			return err
		})
	}()
	return <-answers
}
