package instance

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/task"
)

//go:embed scripts/*.lua
var files embed.FS

var source = store.Sources(files)

func electing(name string) *store.Script {
	return store.NewScript(name, store.Careful, queue.WakeLib, source("lib_elect"), source(name)).Fleeting() // the lease must not wait for replicas
}

var (
	registerScript   = electing("register")
	stateScript      = electing("state")
	heartbeatScript  = electing("heartbeat").Looking()
	deregisterScript = electing("deregister")
	openScript       = electing("open")
	declareScript    = electing("declare")
	standDownScript  = electing("standdown")
	promoteScript    = electing("promote")
	pauseScript      = electing("pause")
)

// releaseGrace is how long what a release declared stays in force when its last instance was lost: time for a supervisor
// to start it again. A release whose last instance left cleanly is absent at once.
const releaseGrace = time.Minute

// releaseMemory is how long a release whose last instance was lost keeps its order: a supervisor that starts it again
// after a long pause does not mean a rollback.
const releaseMemory = 24 * time.Hour

// overslept is how late a watcher may be before a heartbeat tells somebody else to look.
const overslept = 100 * time.Millisecond

// Registry is the partition's list of instances, one typed method a script. It holds no state.
type Registry struct {
	rdb  redis.UniversalClient
	keys queue.Keys
}

// NewRegistry returns the registry of a partition. It does not talk to Redis yet.
func NewRegistry(rdb redis.UniversalClient, p queue.Partition) (*Registry, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &Registry{rdb: rdb, keys: p.Keys()}, nil
}

// View is what every call of the registry returns: who leads, and what to read again.
type View struct {
	Now       time.Time
	Leader    string // instance, or "" if nobody leads
	LeaderGen int64
	Epoch     int64
	Open      bool // consumers may take work: the leader has dealt with what was missed while nobody led
	Lanes     int64
	Schedules int64
	May       bool // the caller may take work, by the leader's rule

	// Back is when somebody led again after a time with nobody, for as long as the gate is shut. It is zero if a release
	// that knows nothing of it elected the leader.
	Back time.Time

	// Forgot: Redis lacks writes that it had answered. Kept is the last heartbeat of anybody that it has, or zero.
	Forgot bool
	Kept   time.Time

	// Probation: the instance is not ready yet, and is to ask again in that time. See [Registry.Ready].
	Probation time.Duration
}

// Beat is what a heartbeat returns besides the view.
type Beat struct {
	View
	Left      time.Duration // of the leader's lease; negative if nobody leads
	Overslept bool          // somebody who should have looked for due work did not
	Orphans   []int64       // generations whose tasks are to be recovered
	Cancel    []Cancel      // runs that are to be cancelled
}

// Cancel asks whoever runs a task, or tasks with a key, to stop those claimed up to a fence.
type Cancel struct {
	Task   string // a task ID, or ""
	Key    string // a key, or ""
	Fence  int64
	Reason string
}

// Covers reports whether a run is asked to stop.
func (c Cancel) Covers(id, key string, fence int64) bool {
	return fence <= c.Fence && (c.Task != "" && c.Task == id || c.Key != "" && c.Key == key)
}

func (r *Registry) first(more ...string) []string {
	k := r.keys
	return append([]string{
		k.Instances, k.Members, k.Leader, k.Meta, k.Events, k.Wake, k.Details, k.Releases, k.Orphans, k.Watch,
		k.Trial, k.Strikes, k.Declarers,
	}, more...)
}

// Past is what an instance that registers again knows from before. The zero value is of one that never was registered.
type Past struct {
	Gen   int64     // its generation: the next is larger
	Order int64     // of its release, which does not become newer because the instance comes back
	Seen  time.Time // when Redis last answered one of its heartbeats
	Led   bool      // and whether somebody led then, with the gate open
}

// Register takes an instance in, as a new generation that is larger than every earlier one. The instance neither leads nor
// takes work before [Registry.Ready]. Registering an ID again declares its earlier generation dead.
func (r *Registry) Register(ctx context.Context, c Config, past Past) (gen, order int64, v View, err error) {
	c = c.withDefaults()
	standby := "0"
	if c.Standby {
		standby = "1"
	}
	details, err := json.Marshal(c.details())
	if err != nil {
		return 0, 0, v, fmt.Errorf("register: %w", err)
	}
	values, err := r.run(ctx, registerScript, r.first(r.keys.Running(past.Gen)), c.ID, c.Lease.Milliseconds(), standby, string(c.Lead), string(c.Consume),
		c.Release, string(details), releaseMemory.Milliseconds(), past.Gen, past.Order, store.Ms(past.Seen), flag(past.Led))
	if err != nil {
		return 0, 0, v, fmt.Errorf("register: %w", err)
	}
	return values.Int(0), values.Int(1), viewOf(values[min(2, len(values)):]), nil
}

// Ready lets an instance join the contest: from the moment this returns, no older one takes work that the rule gives to
// the newest. It returns [queue.ErrFenced] if the instance is not registered any more.
//
// If its release was lost soon after becoming ready, and a candidate of another release is there, it is not ready but on
// [View.Probation]: it becomes ready by asking again after that, or by nobody else being there to lead. The probation is
// a lease long at first.
func (r *Registry) Ready(ctx context.Context, id string, gen int64, lease time.Duration) (View, error) {
	return r.state(ctx, "ready", id, gen, "r", lease)
}

func (r *Registry) state(ctx context.Context, what, id string, gen int64, state string, lease time.Duration) (View, error) {
	values, err := r.run(ctx, stateScript, r.first(), id, gen, state, lease.Milliseconds())
	if err != nil {
		return View{}, fmt.Errorf("%s: %w", what, err)
	}
	v := viewOf(values[min(1, len(values)):])
	v.Probation = time.Duration(values.Int(0)) * time.Millisecond
	return v, nil
}

// Resign takes an instance out of the contest while it finishes what it runs. If it led, another leads when this
// returns.
func (r *Registry) Resign(ctx context.Context, id string, gen int64) (View, error) {
	return r.state(ctx, "resign", id, gen, "d", 0)
}

// Deregister takes an instance out for good. What it still runs is given to others. It may be called twice.
func (r *Registry) Deregister(ctx context.Context, id string, gen int64) (View, error) {
	return r.view(ctx, "deregister", deregisterScript, r.first(r.keys.Running(gen)), id, gen)
}

// Open lets consumers take work after a time with no leader. Only the leader may: [queue.ErrNotLeader].
func (r *Registry) Open(ctx context.Context, t queue.Term) (View, error) {
	return r.view(ctx, "open", openScript, r.first(), t.Instance, t.Gen, t.Epoch)
}

// Promote makes a release newer than all others, as if it had been rolled out now: an instance of it that is ready leads
// when this returns. It returns [queue.ErrNotFound] for one of which no instance is registered and none was lost lately.
func (r *Registry) Promote(ctx context.Context, release string) (View, error) {
	values, err := r.run(ctx, promoteScript, r.first(), release)
	if err == nil && values.Int(0) == 0 {
		err = queue.ErrNotFound
	}
	if err != nil {
		return View{}, fmt.Errorf("promote release %q: %w", release, err)
	}
	return viewOf(values[1:]), nil
}

// LongestPause is how long nobody may take work by one call of [Registry.Pause].
const LongestPause = 10 * time.Minute

// Pause lets nobody take work for so long, at most [LongestPause], from now on; zero ends it. What runs goes on, and ends as
// ever; what falls due meanwhile is late, and then subject to its overlap policy. It is for a planned failover of Redis: what
// is not begun cannot be begun twice. Instances of a release that knows nothing of it take work as ever.
func (r *Registry) Pause(ctx context.Context, d time.Duration) (View, error) {
	if d < 0 || d > LongestPause {
		return View{}, &task.FieldError{Field: "for", Value: d.String(), Reason: "out of range", Hint: "up to " + LongestPause.String()}
	}
	return r.view(ctx, "pause", pauseScript, r.first(), (d + time.Millisecond - 1).Milliseconds())
}

// Paused returns until when nobody may take work, by the clock of Redis, and how long that is yet; zero if there is no pause.
func (r *Registry) Paused(ctx context.Context) (until time.Time, left time.Duration, err error) {
	pipe := r.rdb.Pipeline()
	now, pause := pipe.Time(ctx), pipe.HGet(ctx, r.keys.Leader, "pause")
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return until, 0, fmt.Errorf("read the pause: %w", store.Classify(err))
	}
	ms, _ := pause.Int64()
	until = store.FromMs(ms)
	left = until.Sub(now.Val())
	if left <= 0 || left > 2*LongestPause { // as lib.lua has it: the clock may be behind since
		return time.Time{}, 0, nil
	}
	return until, left, nil
}

// Declare asks whether this leader may declare schedules. It may not while a newer release, or a newer generation of the
// same one, that has declared is present: an older instance neither brings back what was removed nor prunes what was
// added. It is to ask again after a time.
func (r *Registry) Declare(ctx context.Context, t queue.Term) (may bool, again time.Duration, err error) {
	values, err := r.run(ctx, declareScript, r.first(), t.Instance, t.Gen, t.Epoch, releaseGrace.Milliseconds())
	if err != nil {
		return false, 0, fmt.Errorf("declare: %w", err)
	}
	return values.Int(0) == 1, time.Duration(values.Int(1)) * time.Millisecond, nil
}

// Heartbeat renews the lease, drops instances whose lease ran out, and elects if need be. It returns
// [queue.ErrFenced] if this instance's own lease had run out.
//
// It also tells Redis when Redis last answered one, and what the consumer reads if it believes that it watches: from that
// Redis can tell that it has forgotten either. Both may be zero.
func (r *Registry) Heartbeat(ctx context.Context, id string, gen int64, lease time.Duration, seen time.Time, reads string) (Beat, error) {
	values, err := r.run(ctx, heartbeatScript, r.first(r.keys.Cancel),
		id, gen, lease.Milliseconds(), overslept.Milliseconds(), store.Ms(seen), reads)
	if err != nil {
		return Beat{}, fmt.Errorf("heartbeat: %w", err)
	}
	left, late, n := values.Int(viewed), values.Int(viewed+1), int(values.Int(viewed+2))
	b := Beat{View: viewOf(values), Left: time.Duration(left) * time.Millisecond, Overslept: late == 1}
	rest := viewed + 3
	for i := range n {
		b.Orphans = append(b.Orphans, values.Int(rest+i))
	}
	for i := rest + n; i+1 < len(values); i += 2 {
		b.Cancel = append(b.Cancel, parseCancel(values.Text(i), values.Text(i+1)))
	}
	return b, nil
}

// Orphans lists the generations that were declared dead and may still hold tasks.
func (r *Registry) Orphans(ctx context.Context) ([]int64, error) {
	all, err := r.rdb.ZRange(ctx, r.keys.Orphans, 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read lost generations: %w", store.Classify(err))
	}
	gens := make([]int64, 0, len(all))
	for _, text := range all {
		if gen, err := strconv.ParseInt(text, 10, 64); err == nil {
			gens = append(gens, gen)
		}
	}
	return gens, nil
}

// Cancels reads the requests to cancel runs.
func (r *Registry) Cancels(ctx context.Context) ([]Cancel, error) {
	all, err := store.Within(ctx, func() (map[string]string, error) { return r.rdb.HGetAll(ctx, r.keys.Cancel).Result() })
	if err != nil {
		return nil, fmt.Errorf("read cancel requests: %w", store.Classify(err))
	}
	var list []Cancel
	for target, value := range all {
		list = append(list, parseCancel(target, value))
	}
	return list, nil
}

// parseCancel reads "fence asked-at reason" of a key, "k:…", or of a task: as "t:…" if its ID begins like one of the two.
func parseCancel(target, value string) Cancel {
	parts := strings.SplitN(value, " ", 3)
	c := Cancel{}
	c.Fence, _ = strconv.ParseInt(parts[0], 10, 64)
	if len(parts) == 3 {
		c.Reason = parts[2]
	}
	if key, ok := strings.CutPrefix(target, "k:"); ok {
		c.Key = key
		return c
	}
	c.Task = strings.TrimPrefix(target, "t:")
	return c
}

func (r *Registry) view(ctx context.Context, what string, s *store.Script, keys []string, args ...any) (View, error) {
	values, err := r.run(ctx, s, keys, args...)
	if err != nil {
		return View{}, fmt.Errorf("%s: %w", what, err)
	}
	return viewOf(values), nil
}

// run gives up waiting when ctx ends. A reply that comes later is thrown away.
func (r *Registry) run(ctx context.Context, s *store.Script, keys []string, args ...any) (store.Values, error) {
	v, err := store.Within(ctx, func() (any, error) { return s.Run(ctx, r.rdb, keys, args) })
	if err != nil {
		return nil, err
	}
	values, err := store.ValuesOf(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return values, nil
}

// viewed is how many values a view has.
const viewed = 10

func viewOf(values store.Values) View {
	return View{
		Now: store.FromMs(values.Int(0)), Leader: values.Text(1), LeaderGen: values.Int(2),
		Epoch: values.Int(3), Open: values.Int(4) == 1, Lanes: values.Int(5), Schedules: values.Int(6),
		Forgot: values.Text(7) != "", Kept: store.FromMs(values.Int(7)), May: values.Int(8) == 1,
		Back: store.FromMs(values.Int(9)),
	}
}
