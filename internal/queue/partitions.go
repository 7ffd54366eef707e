package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

var splitScript = store.NewScript("split", source("split"))

// Split makes a namespace one of n partitions, 2 or more, which it stays. It returns [ErrPartitions] if the namespace has another
// number already, or was used without being split. Then nothing registers, is added or changes outside of the partitions.
func Split(ctx context.Context, rdb redis.UniversalClient, namespace string, n int) error {
	p := Partition{Namespace: namespace}
	if err := p.Validate(); err != nil {
		return err
	}
	if _, err := splitScript.Run(ctx, rdb, []string{p.Keys().Meta}, []any{n}); err != nil {
		return fmt.Errorf("split into %d partitions: %w", n, err)
	}
	return nil
}

// CountPartitions returns into how many partitions a namespace is split: 1 if it is not, or if nobody has used it yet.
func CountPartitions(ctx context.Context, rdb redis.UniversalClient, namespace string) (int, error) {
	p := Partition{Namespace: namespace}
	if err := p.Validate(); err != nil {
		return 0, err
	}
	text, err := rdb.HGet(ctx, p.Keys().Meta, "partitions").Result()
	if errors.Is(err, redis.Nil) {
		return 1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("count partitions: %w", store.Classify(err))
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 {
		return 0, fmt.Errorf("count partitions: %w", task.ErrDamaged)
	}
	return n, nil
}
