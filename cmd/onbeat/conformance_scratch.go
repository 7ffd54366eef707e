package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/conformance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// openScratch opens a namespace that conformance removes at the end.
func openScratch(t target, namespace string) (*conformance.Scratch, error) {
	c, s, err := openNamespace(t.url, namespace)
	if err == nil {
		c.Expire, c.Remove, c.FlushScripts = s.expire, s.remove, s.flushScripts
	}
	return c, err
}

// openNamespace opens a namespace for a scenario.
func openNamespace(url, namespace string) (*conformance.Scratch, *scratch, error) {
	t := target{url: url, cfg: onbeat.Config{Namespace: namespace}}
	rdb, err := t.dial()
	if err != nil {
		return nil, nil, err
	}
	d, err := t.dispatcher(rdb)
	if err != nil {
		_ = rdb.Close()
		return nil, nil, err
	}
	q, err := queue.New(rdb, queue.Partition{Namespace: namespace}, queue.Caps{})
	if err != nil {
		_ = rdb.Close()
		return nil, nil, err
	}
	return &conformance.Scratch{Admin: d.Admin(), Queue: q, Close: func() { _ = rdb.Close() }}, &scratch{rdb, q}, nil
}

// scratch is a namespace whose keys can all be named. It never scans: a scan would read through all other keys of that
// Redis.
type scratch struct {
	rdb redis.UniversalClient
	q   *queue.Queue
}

// keys returns all keys that the namespace may have.
func (s *scratch) keys(ctx context.Context) ([]string, error) {
	k := s.q.Keys()
	names := []string{
		k.Tasks, k.Lanes, k.Held, k.Active, k.Dead, k.Done, k.Cancel, k.Watch, k.Orphans, k.Schedules, k.Last, k.Behind,
		k.Changed, k.Retired, k.Retirements, k.Revisions, k.Pauses, k.Instances, k.Members, k.Details, k.Leader, k.Releases, k.Trial, k.Strikes,
		k.Declarers, k.Asked, k.Suspects, k.Meta, k.Events, k.History, k.Runs, k.Bulk, k.Health,
	}
	lanes, err := s.rdb.HKeys(ctx, k.Lanes).Result()
	if err != nil {
		return nil, err
	}
	for _, text := range lanes {
		if lane, err := queue.ParseLane(text); err == nil {
			names = append(names, k.Due(lane))
		}
	}
	for _, typ := range []string{"http", "echo"} { // also the lanes that were empty for long
		for _, p := range []task.Priority{task.High, task.Normal, task.Low} {
			names = append(names, k.Due(queue.LaneOf(task.New(typ, nil, task.WithPriority(p)))))
		}
	}
	generations, err := s.generations(ctx)
	for _, g := range generations {
		names = append(names, k.Running(g))
	}
	return names, err
}

// generations returns all generations that ever registered. The events name each of them, as long as the stream of events is
// not trimmed.
func (s *scratch) generations(ctx context.Context) (list []int64, err error) {
	events, err := s.rdb.XRange(ctx, s.q.Keys().Events, "-", "+").Result()
	for _, e := range events {
		text, _ := e.Values["generation"].(string)
		if g, err := strconv.ParseInt(text, 10, 64); err == nil {
			list = append(list, g)
		}
	}
	return list, err
}

// expire makes Redis remove every key after a time.
func (s *scratch) expire(ctx context.Context, after time.Duration) error {
	names, err := s.keys(ctx)
	if err != nil {
		return store.Classify(err)
	}
	_, err = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, name := range names {
			p.PExpire(ctx, name, after)
		}
		return nil
	})
	return store.Classify(err)
}

// remove removes every key. Commands of a killed instance may still arrive later, so it repeats until no key is left.
func (s *scratch) remove(ctx context.Context) error {
	for {
		names, err := s.keys(ctx)
		if err != nil {
			return store.Classify(err)
		}
		gone, err := s.rdb.Del(ctx, names...).Result()
		if err != nil || gone == 0 {
			return store.Classify(err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("keys of %s keep coming back: %w", strings.TrimSuffix(s.q.Keys().Wake, "wake"), ctx.Err())
		}
	}
}

// flushScripts empties the script cache, of each node of a cluster.
func (s *scratch) flushScripts(ctx context.Context) error {
	if cluster, ok := s.rdb.(*redis.ClusterClient); ok {
		return store.Classify(cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			return node.ScriptFlush(ctx).Err()
		}))
	}
	return store.Classify(s.rdb.ScriptFlush(ctx).Err())
}
