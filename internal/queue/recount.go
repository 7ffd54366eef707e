package queue

import (
	"context"
	"fmt"
	"slices"

	"github.com/onbeat/onbeat/internal/store"
)

var recountScript = store.NewScript("recount", store.Careful, WakeLib, source("lib_held"), source("lib_gens"), source("recount"))

// mostRecounted is the most runs that one call looks at. No instance can claim a task while it runs.
const mostRecounted = 20_000

// Recount counts again how many tasks run of each key, and of each type with a limit. It corrects the counts in Redis and
// returns how many were wrong. Counts go wrong only if another program writes to onbeat's keys. Recount looks at all runs
// in one call; it does nothing and returns 0 if there are more than 20,000, or if an instance joins meanwhile.
func (q *Queue) Recount(ctx context.Context) (wrong int, err error) {
	k := &q.keys
	keys := []string{k.Active, k.Members, k.Orphans, k.Held, k.Tasks, k.Watch, k.Events}
	keys, args, err := q.declareRuns(ctx, keys, []any{k.Wake, q.caps.Events, mostRecounted})
	if err != nil {
		return 0, fmt.Errorf("recount: %w", err)
	}
	lanes, _, err := q.Lanes(ctx)
	if err != nil {
		return 0, fmt.Errorf("recount: %w", err)
	}
	for _, l := range lanes {
		keys = append(keys, k.Due(l))
	}
	v, err := recountScript.Run(ctx, q.rdb, keys, args)
	if err != nil {
		return 0, fmt.Errorf("recount: %w", err)
	}
	r := store.NewReply(v)
	return int(max(r.Int(), 0)), r.Err
}

// declareRuns appends the running hashes of all generations to keys, and their count and numbers to args. See lib_gens.lua.
func (q *Queue) declareRuns(ctx context.Context, keys []string, args []any) ([]string, []any, error) {
	known, err := q.generations(ctx)
	if err != nil {
		return nil, nil, err
	}
	gens := make([]int64, 0, len(known))
	for _, g := range known {
		gens = append(gens, g.gen)
	}
	slices.Sort(gens)
	gens = slices.Compact(gens) // a damaged entry may name the generation of another instance
	args = append(args, len(gens))
	for _, gen := range gens {
		keys, args = append(keys, q.keys.Running(gen)), append(args, gen)
	}
	return keys, args, nil
}
