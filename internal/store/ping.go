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
	answers := make(chan error, 1)
	answer := func(err error) {
		select {
		case answers <- err:
		default: // another node was faster
		}
	}
	go func() {
		answer(cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			err := node.Ping(ctx).Err()
			if err == nil {
				answer(nil)
			}
			return err
		}))
	}()
	return <-answers
}
