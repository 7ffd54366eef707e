package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
)

var mendScript = store.NewScript("mend", source("mend"))

// types maps each key of a partition to its Redis type, except the keys of lanes and generations.
func (k *Keys) types() map[string]string {
	all := map[string]string{k.Events: "stream", k.History: "stream", k.Runs: "stream"}
	for _, key := range []string{
		k.Tasks, k.Lanes, k.Active, k.Cancel, k.Schedules, k.Last, k.Behind, k.Retired, k.Revisions, k.Members, k.Details,
		k.Leader, k.Releases, k.Strikes, k.Declarers, k.Asked, k.Suspects, k.Meta, k.Notices, k.Health, k.Pauses, k.Answers, k.Bulk,
	} {
		all[key] = "hash"
	}
	for _, key := range []string{k.Held, k.Dead, k.Done, k.Watch, k.Orphans, k.Changed, k.Retirements, k.Instances, k.Trial, k.Answered} {
		all[key] = "zset"
	}
	return all
}

// typeOf returns the Redis type of the key of a lane, a generation or a unique window, and "" for another key.
func (k *Keys) typeOf(key string) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(key, k.prefix), ":")
	return map[string]string{"due": "zset", "running": "hash", "unique": "string"}[kind]
}

// Mend sets aside every key of the partition that has the wrong Redis type because another program wrote over it. It
// renames each to "…aside:<unix ms>:…", keeps it there for a month, and returns the names that the keys had.
//
// A script that meets such a key does nothing and returns [store.ErrWrongType]; the caller passes that error as cause. The
// key's old content was lost when the other program wrote over it. [Queue.FindLost] brings back what other keys know of it.
func (q *Queue) Mend(ctx context.Context, cause error) (aside []string, err error) {
	aside, err = q.mend(ctx, q.keys.types())
	if err != nil {
		return nil, fmt.Errorf("mend: %w", err)
	}
	more, err := q.madeKeys(ctx, cause)
	if err == nil && len(more) > 0 {
		var found []string
		found, err = q.mend(ctx, more)
		aside = append(aside, found...)
	}
	if err == nil && slices.ContainsFunc(aside, func(key string) bool {
		return key == q.keys.Active || strings.HasPrefix(key, q.keys.prefix+"running:")
	}) {
		_, err = q.Recount(ctx)
	}
	if err != nil {
		return aside, fmt.Errorf("mend: %w", err)
	}
	return aside, nil
}

// OfAnotherType names the keys that [Queue.Mend] would set aside.
func (q *Queue) OfAnotherType(ctx context.Context) ([]string, error) {
	types := q.keys.types()
	strange, err := q.strange(ctx, types)
	if err != nil || slices.Contains(strange, q.keys.Lanes) || slices.Contains(strange, q.keys.Members) || slices.Contains(strange, q.keys.Orphans) {
		return strange, err // madeKeys reads these three, and would fail
	}
	more, err := q.madeKeys(ctx, nil)
	if err != nil {
		return nil, err
	}
	rest, err := q.strange(ctx, more)
	return append(strange, rest...), err
}

// strange returns the keys that exist with another type than types says.
func (q *Queue) strange(ctx context.Context, types map[string]string) (names []string, err error) {
	pipe := q.rdb.Pipeline()
	are := map[string]*redis.StatusCmd{}
	for key := range types {
		are[key] = pipe.Type(ctx, key)
	}
	if len(are) == 0 {
		return nil, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("look at the types of keys: %w", store.Classify(err))
	}
	for key, is := range are {
		if is.Val() != "none" && is.Val() != types[key] {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return names, nil
}

// madeKeys returns, with their types, the keys of all known lanes and generations, and those that cause names.
func (q *Queue) madeKeys(ctx context.Context, cause error) (map[string]string, error) {
	types := map[string]string{}
	add := func(key string) {
		if typ := q.keys.typeOf(key); typ != "" {
			types[key] = typ
		}
	}
	if w := (*store.WrongTypeError)(nil); errors.As(cause, &w) {
		for _, key := range w.Keys {
			add(key)
		}
	}
	lanes, err := q.rdb.HKeys(ctx, q.keys.Lanes).Result()
	if err != nil {
		return nil, store.Classify(err)
	}
	for _, l := range lanes {
		add(q.keys.prefix + "due:" + l)
	}
	gens, err := q.generations(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range gens {
		add(q.keys.Running(g.gen))
	}
	return types, nil
}

// mend runs mend.lua on keys. The script needs Events, Meta and Changed itself, so they always come first.
func (q *Queue) mend(ctx context.Context, types map[string]string) ([]string, error) {
	delete(types, q.keys.Events)
	delete(types, q.keys.Meta)
	delete(types, q.keys.Changed)
	names := append([]string{q.keys.Events, q.keys.Meta, q.keys.Changed}, slices.Sorted(maps.Keys(types))...)
	keys, args := slices.Clone(names), []any{q.caps.Events, "stream", "hash", "zset"}
	at := time.Now().UnixMilli()
	for _, name := range names {
		keys = append(keys, fmt.Sprintf("%saside:%d:%s", q.keys.prefix, at, strings.TrimPrefix(name, q.keys.prefix)))
	}
	for _, name := range names[3:] {
		args = append(args, types[name])
	}
	v, err := mendScript.Run(ctx, q.rdb, keys, args)
	if err != nil {
		return nil, err
	}
	r, aside := store.NewReply(v), []string(nil)
	for r.More() {
		aside = append(aside, r.Text())
	}
	return aside, r.Err
}
