package queue

import (
	"context"
	"fmt"
	"slices"

	"github.com/onbeat/onbeat/store"
)

var recountScript = store.NewScript("recount", store.Careful, WakeLib, source("lib_held"), source("lib_gens"), source("recount"))

// mostRecounted is how many runs are looked at in one call: all that is due waits for it.
const mostRecounted = 20_000

// Recount counts anew what runs of each key and of each type that has a limit, and returns how many of the counts were
// wrong: they are only if something else than onbeat writes to its keys. It looks at all runs at once, and not at all if
// they are more than 20,000, or an instance joins meanwhile.
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

// declareRuns appends the running hashes of all generations to keys, and their count and numbers to args: see lib_gens.lua.
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
	gens = slices.Compact(gens) // a damaged entry may name another's
	args = append(args, len(gens))
	for _, gen := range gens {
		keys, args = append(keys, q.keys.Running(gen)), append(args, gen)
	}
	return keys, args, nil
}
