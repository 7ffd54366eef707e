package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
)

// ErrNumberLost is an [ErrPartitions]: there are partitions, and Redis has lost their number.
var ErrNumberLost error = numberLost{}

type numberLost struct{}

func (numberLost) Error() string {
	return "the namespace is split, and redis has lost the number of its partitions"
}
func (numberLost) Unwrap() error { return ErrPartitions }

// MostPartitions is the largest number of partitions of a namespace.
const MostPartitions = 256

var errNumber = fmt.Errorf("not a number from 2 to %d: something else wrote it", MostPartitions)

var splitScript = store.NewScript("split", source("split"))

// Split makes a namespace one of n partitions, 2 or more, which it stays, and notes the types that have a limit. It returns all types that
// were noted so. It returns [ErrPartitions] if the namespace has another number already, or was used without being split. Then nothing
// registers, is added or changes outside of the partitions.
func Split(ctx context.Context, rdb redis.UniversalClient, namespace string, n int, limited ...string) (types []string, err error) {
	p := Partition{Namespace: namespace}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	args := []any{n}
	for _, typ := range limited {
		args = append(args, typ)
	}
	reply, err := splitScript.Run(ctx, rdb, []string{p.Keys().Meta}, args)
	if store.Retryable(err) {
		return nil, fmt.Errorf("ask the node of %s for the number of partitions: %w", p.Keys().Meta, err)
	}
	if err != nil {
		return nil, fmt.Errorf("namespace %q with %d partitions: %w", namespace, n, err)
	}
	text, _ := reply.(string)
	return strings.Fields(text), nil
}

// Unsplit returns [ErrNumberLost] for a namespace that is split though Redis has lost the number: the scripts would take it for one that
// nobody has used. They refuse one whose number is there. A user who may not ask is believed.
func Unsplit(ctx context.Context, rdb redis.UniversalClient, namespace string) error {
	_, err := Partitions(ctx, rdb, namespace)
	if errors.Is(err, ErrPartitions) || store.Retryable(err) {
		return err
	}
	return nil
}

// Limited returns the types with a limit that the instances of a split namespace have noted.
func Limited(ctx context.Context, rdb redis.UniversalClient, namespace string) ([]string, error) {
	types, err := rdb.HGet(ctx, Partition{Namespace: namespace}.Keys().Meta, "limited").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("types with a limit: %w", store.Classify(err))
	}
	return strings.Fields(types), nil
}

// Partitions returns into how many partitions a namespace is split: 1 if it is not, and 0 if nobody has used it yet. It returns
// [ErrPartitions] if the number is lost, while partitions are there: the node that had it came back empty, and an instance will write it again.
func Partitions(ctx context.Context, rdb redis.UniversalClient, namespace string) (int, error) {
	p := Partition{Namespace: namespace}
	if err := p.Validate(); err != nil {
		return 0, err
	}
	meta := p.Keys().Meta
	pipe := rdb.Pipeline()
	number, fields := pipe.HGet(ctx, meta, "partitions"), pipe.HLen(ctx, meta)
	if err := exec(ctx, pipe); err != nil {
		return 0, fmt.Errorf("count partitions in %s: %w", meta, err)
	}
	if errors.Is(number.Err(), redis.Nil) && fields.Val() > 0 {
		return 1, nil
	}
	if errors.Is(number.Err(), redis.Nil) {
		for i := 1; i <= 2; i++ {
			p.Number = i
			there, err := rdb.HLen(ctx, p.Keys().Meta).Result()
			if err = store.Classify(err); store.LacksRight(err) {
				return 0, nil // this user may use no partitions
			}
			if err != nil || there > 0 {
				return 0, cmp.Or(err, ErrNumberLost)
			}
		}
		return 0, nil
	}
	n, err := strconv.Atoi(number.Val())
	if err != nil || n < 2 || n > MostPartitions {
		return 0, fmt.Errorf("count partitions: field partitions of %s is %q: %w", meta, wording.Cut(number.Val(), 40), errNumber)
	}
	return n, nil
}
