package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
)

// split learns into how many partitions the namespace is split, and refuses another number.
func (t *target) split(ctx context.Context, rdb redis.UniversalClient) error {
	patience := t.patience()
	if t.cfg.Partitions > 1 { // it can do without the answer
		patience = connectTime
	}
	ctx, done := context.WithTimeout(ctx, patience)
	defer done()
	n, err := queue.Partitions(ctx, rdb, t.cfg.Namespace)
	said := max(t.cfg.Partitions, 1)
	switch {
	case errors.Is(err, queue.ErrPartitions) && t.cfg.Partitions > 1:
		return nil // the config knows what Redis has lost
	case errors.Is(err, queue.ErrPartitions):
		return &failure{err, "start an instance, which writes it again; or give --config with partitions"}
	case err != nil && strings.Contains(err.Error(), "MOVED "):
		return &failure{fmt.Errorf("%s: %w", secret.URL(t.url), err), admin.OneNode}
	case err != nil && t.cfg.Partitions > 1 && store.Retryable(err):
		return nil // each answer says which partitions do not answer
	case err != nil && !store.Retryable(err):
		return fmt.Errorf("%s: %w", secret.URL(t.url), err)
	case err != nil:
		return &failure{fmt.Errorf("%s: %w", secret.URL(t.url), err), "the node that has the number of partitions is away: with --config that says it, the others are asked"}
	case n == 0:
		return nil
	case t.cfg.Partitions > 0 && said != n:
		return refuse("partitions", strconv.Itoa(said), fmt.Sprintf("namespace %s has %s", t.cfg.Namespace, wording.Count(int64(n), "partition", "partitions")), splitHint)
	}
	t.cfg.Partitions = n
	return nil
}

// splitHint says what to do about another number of partitions.
const splitHint = "the number never changes: give the one that the namespace has; docs/scaling.md has the way to another"

// absent returns the partitions among the sources that could not be asked: without them a list is not whole.
func absent(unasked []admin.Unasked) []admin.Unasked {
	return slices.DeleteFunc(slices.Clone(unasked), func(u admin.Unasked) bool { return !strings.HasPrefix(u.Source, "partition ") })
}

// lacking says, after a list, which sources could not be asked, so that the list lacks what they know. It returns nil if all could.
func lacking(unasked []admin.Unasked) error {
	if len(unasked) == 0 {
		return nil
	}
	var names []string
	for _, u := range unasked {
		names = append(names, u.Source)
	}
	return &failure{fmt.Errorf("could not ask %s: %s: what lies there is not shown", strings.Join(names, ", "), unasked[0].Error), "onbeat status"} //nolint:err113 // for a person
}

// partitionsText names partitions, such as "partitions 3, 5".
func partitionsText(list []int) string {
	if len(list) == 1 {
		return fmt.Sprintf("partition %d", list[0])
	}
	return "partitions " + strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]")
}
