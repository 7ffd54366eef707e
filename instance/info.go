package instance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
)

// Info is one instance as people see it.
type Info struct {
	ID         string
	Release    string
	Generation int64
	Order      int64
	State      string // starting, ready or draining
	Standby    bool
	Resigned   bool // a person asked it to resign: it leads only if no other instance can
	Suspected  bool // it showed no sign of life while it led: another leads, if one can, until it shows one
	Leader     bool
	Epoch      int64 // of the leader
	Lead       Lead
	Consume    Consume
	Lease      time.Duration // the time left of its lease
	Probation  time.Duration // the time left of its probation; zero: it is not on probation
	Running    int64
	Details
}

// List returns all registered instances, the highest rank first. They may have changed since.
func (r *Registry) List(ctx context.Context) ([]Info, error) {
	pipe := r.rdb.Pipeline()
	now, err := store.PipeNow(ctx, r.rdb, r.keys.Instances, pipe)
	if err != nil {
		return nil, fmt.Errorf("list instances: %w", err)
	}
	leases := pipe.ZRangeWithScores(ctx, r.keys.Instances, 0, -1)
	members := pipe.HGetAll(ctx, r.keys.Members)
	details := pipe.HGetAll(ctx, r.keys.Details)
	trial := pipe.ZRangeWithScores(ctx, r.keys.Trial, 0, -1)
	leader := pipe.HMGet(ctx, r.keys.Leader, "id", "epoch")
	suspects := pipe.HGetAll(ctx, r.keys.Suspects)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("list instances: %w", store.Classify(err))
	}
	ends := make(map[string]time.Time, len(trial.Val()))
	for _, z := range trial.Val() {
		gen, _ := z.Member.(string)
		ends[gen] = time.UnixMilli(int64(z.Score))
	}
	list := make([]Info, 0, len(leases.Val()))
	for _, z := range leases.Val() {
		id, _ := z.Member.(string)
		i := parseMember(id, members.Val()[id])
		i.Suspected = suspected(suspects.Val()[id], i.Generation)
		_ = json.Unmarshal([]byte(details.Val()[id]), &i.Details) // for people: a missing detail stays empty
		i.Lease = time.UnixMilli(int64(z.Score)).Sub(now())
		if end, ok := ends[strconv.FormatInt(i.Generation, 10)]; ok && i.State == "starting" {
			i.Probation = max(end.Sub(now()), 0)
		}
		if lead, _ := leader.Val()[0].(string); lead == id {
			epoch, _ := leader.Val()[1].(string)
			i.Leader = true
			i.Epoch, _ = strconv.ParseInt(epoch, 10, 64)
		}
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b Info) int {
		if a.Order != b.Order {
			return int(b.Order - a.Order)
		}
		return int(b.Generation - a.Generation)
	})
	return list, r.countRunning(ctx, list)
}

// Release is a release that is registered, or was lost within a day.
type Release struct {
	Name  string
	Order int64     // the higher, the newer
	Gone  time.Time // when its last instance was lost; zero while one is registered
}

// Releases returns the releases in no order, without those that left cleanly.
func (r *Registry) Releases(ctx context.Context) ([]Release, error) {
	all, err := r.rdb.HGetAll(ctx, r.keys.Releases).Result()
	if err != nil {
		return nil, fmt.Errorf("list releases: %w", store.Classify(err))
	}
	list := make([]Release, 0, len(all))
	for name, text := range all {
		var order, gone int64
		if n, _ := fmt.Sscanf(text, "%d %d", &order, &gone); n == 2 {
			list = append(list, Release{name, order, store.FromMs(gone)})
		}
	}
	return list, nil
}

func (r *Registry) countRunning(ctx context.Context, list []Info) error {
	if len(list) == 0 {
		return nil
	}
	pipe := r.rdb.Pipeline()
	counts := make([]*redis.IntCmd, len(list))
	for i := range list {
		counts[i] = pipe.HLen(ctx, r.keys.Running(list[i].Generation))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("count running tasks: %w", store.Classify(err))
	}
	for i, c := range counts {
		list[i].Running = max(c.Val()-1, 0) // less the entry that holds the last seq
	}
	return nil
}

// suspected reads a value of the suspects hash; see lib_elect.lua. A damaged one counts as absent, as it does there.
func suspected(noted string, generation int64) bool {
	parts := strings.Split(noted, " ")
	if len(parts) != 5 || parts[0] != strconv.FormatInt(generation, 10) {
		return false
	}
	since, err := strconv.ParseInt(parts[4], 10, 64)
	return err == nil && since > 0
}

// states are the words for a state in the members hash.
var states = map[string]string{"s": "starting", "r": "ready", "d": "draining"}

// parseMember reads a value of the members hash; see lib_elect.lua.
func parseMember(id, member string) Info {
	i := Info{ID: id}
	parts := strings.SplitN(member, " ", 7)
	if len(parts) < 6 {
		return i
	}
	i.Generation, _ = strconv.ParseInt(parts[0], 10, 64)
	i.Order, _ = strconv.ParseInt(parts[1], 10, 64)
	i.State = states[parts[2]]
	i.Standby, i.Resigned = parts[3] == "1", parts[3] == "2"
	i.Lead, i.Consume = Lead(parts[4]), Consume(parts[5])
	if len(parts) == 7 {
		i.Release = parts[6]
	}
	return i
}
