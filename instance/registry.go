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

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

//go:embed scripts/*.lua
var files embed.FS

var source = store.Sources(files)

func electing(name string) *store.Script {
	s := store.NewScript(name, store.Careful, queue.WakeLib, source("lib_elect"), source("lib_lost"), source(name))
	return s.Fleeting() // the lease must not wait for replicas
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
	raiseScript      = electing("raise")
	pauseScript      = electing("pause")
	askScript        = electing("ask")
	lookScript       = electing("look")
)

// releaseGrace is how long the schedules of a release stay in force after its last instance was lost. In that time a
// supervisor can start it again. A release whose last instance left cleanly is absent at once.
const releaseGrace = time.Minute

// releaseMemory is how long a release whose last instance was lost keeps its order: a supervisor that starts it again
// after a long pause does not mean a rollback.
const releaseMemory = 24 * time.Hour

// overslept is how late a watcher may be before a heartbeat makes its caller look instead.
const overslept = 100 * time.Millisecond

// Registry is the partition's list of instances: one typed method for each script. It holds no state, and is safe for
// concurrent use.
type Registry struct {
	rdb  redis.UniversalClient
	keys queue.Keys
}

// NewRegistry returns the registry of a namespace. It does not talk to Redis yet.
func NewRegistry(rdb redis.UniversalClient, namespace string) (*Registry, error) {
	q, err := queue.Of(rdb, namespace)
	if err != nil {
		return nil, err
	}
	return registryOf(q), nil
}

func registryOf(q *queue.Queue) *Registry { return &Registry{rdb: q.Redis(), keys: q.Keys()} }

// View is the part of the reply that every call of the registry returns: the leader, and versions that tell what to read
// again.
type View struct {
	Now       time.Time
	Leader    string // the leader's ID, or "" if no instance leads
	LeaderGen int64
	Epoch     int64
	Open      bool // the gate is open: the leader has dealt with the slots that were missed while no instance led
	Lanes     int64
	Schedules int64
	May       bool   // the caller may claim tasks, by the leader's rule
	State     string // the caller's own state, as [Info] has it; "" if it is not registered

	// Back is when an instance led again after a time with no leader, while the gate is shut. It is zero if an older
	// release, which does not know it, elected the leader.
	Back time.Time

	// Forgot: Redis has lost writes that it had answered. Kept is the last heartbeat of any instance that it has, or zero.
	Forgot bool
	Kept   time.Time

	// Probation: the instance is not ready yet, and must ask again after that time. See [Registry.Ready].
	Probation time.Duration
}

// Beat is what a heartbeat returns besides the view.
type Beat struct {
	View
	Left      time.Duration // the time left of the leader's lease; negative if no instance leads
	Overslept bool          // a watcher did not look for due work in time: the caller must look
	Listens   int           // 1: the caller's channel has a listener; 0: it has none; -1: Redis does not tell
	Monitor   bool          // the caller is the monitor: it must look whether the leader lives
	Look      time.Duration // in how long the monitor must look
	Order     int64         // the order of the caller's release, which a promotion makes larger
	Orphans   []int64       // generations to recover
	Cancel    []Cancel      // runs to cancel
}

// Cancel asks the instance that runs a task, or tasks with a key, to stop the runs whose fence is at most Fence.
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
		k.Trial, k.Strikes, k.Declarers, k.Asked, k.Suspects,
	}, more...)
}

// Past is what an instance knows from its earlier registration. The zero value means that it was never registered.
type Past struct {
	Gen   int64     // its generation: the next one is larger
	Order int64     // the order of its release, which stays the same when the instance comes back
	Seen  time.Time // when Redis last answered one of its heartbeats, by the clock of Redis
	Led   bool      // an instance led then, and the gate was open
	// Elsewhere is the order of its release in other partitions of the namespace, as far as it knows: here it is at least that. So all
	// partitions come to agree which release is the newest.
	Elsewhere int64
}

// Register registers an instance as a new generation, larger than every earlier one. The instance neither leads nor claims
// before [Registry.Ready]. To register an ID again declares its earlier generation dead.
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
		c.Release, string(details), releaseMemory.Milliseconds(), past.Gen, past.Order, store.Ms(past.Seen), flag(past.Led), past.Elsewhere)
	if err != nil {
		return 0, 0, v, fmt.Errorf("register: %w", err)
	}
	return values.Int(0), values.Int(1), viewOf(values[min(2, len(values)):]), nil
}

// Ready makes an instance ready, so that it can lead. Once Ready returns, no older instance claims a task that the rule
// gives to the newest. It returns an error if the instance is not registered any more.
//
// If an instance of its release was lost soon after becoming ready, and a candidate of another release is there, the
// instance is not ready but on [View.Probation]. It becomes ready when the caller asks again after that time, or at once
// when no other instance can lead. The first probation is one lease long.
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

// Resign makes an instance drain: it finishes its runs and claims nothing more. If it led, and another instance can lead,
// that one leads when Resign returns.
func (r *Registry) Resign(ctx context.Context, id string, gen int64) (View, error) {
	return r.state(ctx, "resign", id, gen, "d", 0)
}

// Deregister removes an instance for good. Other instances recover the tasks that it still runs. To call it twice is
// harmless.
func (r *Registry) Deregister(ctx context.Context, id string, gen int64) (View, error) {
	return r.view(ctx, "deregister", deregisterScript, r.first(r.keys.Running(gen)), id, gen)
}

// Open opens the gate after a time with no leader, so that consumers claim again. Only the leader may call it: for
// another instance it returns an error, and changes nothing.
func (r *Registry) Open(ctx context.Context, t task.Term) (View, error) {
	return r.view(ctx, "open", openScript, r.first(), t.Instance, t.Gen, t.Epoch)
}

// Promote makes a release the newest, as if it had been rolled out now. If an instance of it is ready, one leads when
// Promote returns. It returns [task.ErrNotFound] if no instance of the release is registered and none was lost lately.
func (r *Registry) Promote(ctx context.Context, release string) (View, error) {
	values, err := r.run(ctx, promoteScript, r.first(), release, queue.Actor(ctx))
	if err == nil && values.Int(0) == 0 {
		err = task.ErrNotFound
	}
	if err != nil {
		return View{}, fmt.Errorf("promote release %q: %w", release, err)
	}
	return viewOf(values[1:]), nil
}

// Raise gives a release the order that it has in another partition, if that is larger, and returns its order. It is 0 if the release is not
// known here.
func (r *Registry) Raise(ctx context.Context, release string, order int64) (int64, error) {
	values, err := r.run(ctx, raiseScript, r.first(), release, order)
	if err != nil {
		return 0, fmt.Errorf("raise release %q: %w", release, err)
	}
	return int64(values.Int(0)), nil
}

// LongestPause is the longest pause that one call of [Registry.Pause] makes.
const LongestPause = 10 * time.Minute

// Pause stops all instances from claiming for d from now on, at most [LongestPause]; zero ends a pause. Runs go on and are
// settled as usual. Tasks that fall due meanwhile are late, and subject to their overlap policy. Use it for a planned
// failover of Redis: a task that has not begun cannot begin twice. The reason may be "".
func (r *Registry) Pause(ctx context.Context, d time.Duration, reason string) (View, error) {
	if err := queue.CheckReason(reason); err != nil {
		return View{}, err
	}
	if d < 0 || d > LongestPause {
		return View{}, &task.FieldError{Field: "for", Value: d.String(), Reason: "out of range", Hint: "up to " + LongestPause.String()}
	}
	verb := "pause"
	if d == 0 {
		verb = "resume"
	}
	return r.view(ctx, verb, pauseScript, r.first(), (d + time.Millisecond - 1).Milliseconds(), queue.Actor(ctx), reason)
}

// Paused returns until when no instance may claim, by the clock of Redis, and why, if a reason was given. Both are zero without a pause.
func (r *Registry) Paused(ctx context.Context) (until time.Time, reason string, err error) {
	pipe := r.rdb.Pipeline()
	now, err := store.PipeNow(ctx, r.rdb, r.keys.Leader, pipe)
	if err != nil {
		return until, "", fmt.Errorf("read the pause: %w", err)
	}
	pause := pipe.HGet(ctx, r.keys.Leader, "pause")
	why := pipe.HGet(ctx, r.keys.Leader, "reason")
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return until, "", fmt.Errorf("read the pause: %w", store.Classify(err))
	}
	ms, _ := pause.Int64()
	until = store.FromMs(ms)
	left := until.Sub(now())
	if left <= 0 || left > 2*LongestPause { // as lib.lua has it: the clock may be behind since
		return time.Time{}, "", nil
	}
	return until, why.Val(), nil
}

// Declare asks whether this leader may declare schedules. It may not while a newer release that has declared, or a newer
// generation of its own, is present: an older instance must neither bring back schedules that were removed nor prune ones
// that were added. If not, the leader asks again after the returned time.
func (r *Registry) Declare(ctx context.Context, t task.Term) (may bool, again time.Duration, err error) {
	return r.declare(ctx, t, false)
}

// Redeclare is Declare for a leader that a person told to read its schedules again: only a newer release keeps it from declaring.
func (r *Registry) Redeclare(ctx context.Context, t task.Term) (may bool, again time.Duration, err error) {
	return r.declare(ctx, t, true)
}

func (r *Registry) declare(ctx context.Context, t task.Term, person bool) (may bool, again time.Duration, err error) {
	values, err := r.run(ctx, declareScript, r.first(), t.Instance, t.Gen, t.Epoch, releaseGrace.Milliseconds(), flag(person))
	if err != nil {
		return false, 0, fmt.Errorf("declare: %w", err)
	}
	return values.Int(0) == 1, time.Duration(values.Int(1)) * time.Millisecond, nil
}

// Heartbeat renews the lease, drops instances whose lease ran out, and elects a leader if there is none. It returns
// an error if this instance's own lease had run out.
//
// Seen is when Redis last answered a heartbeat of this instance. Reads names the lanes that the consumer reads while it relies
// on being woken. From both the script can tell whether Redis has lost writes. Both may be zero.
func (r *Registry) Heartbeat(ctx context.Context, id string, gen int64, lease time.Duration, seen time.Time, reads string) (Beat, error) {
	values, err := r.run(ctx, heartbeatScript, r.first(r.keys.Cancel),
		id, gen, lease.Milliseconds(), overslept.Milliseconds(), store.Ms(seen), reads,
		lookLate.Milliseconds(), lookAfter.Milliseconds(), lookBusy.Milliseconds())
	if err != nil {
		return Beat{}, fmt.Errorf("heartbeat: %w", err)
	}
	left, late, look, n := values.Int(viewed), values.Int(viewed+1), values.Int(viewed+3), int(values.Int(viewed+5))
	b := Beat{
		View: viewOf(values), Left: time.Duration(left) * time.Millisecond, Overslept: late == 1,
		Listens: int(values.Int(viewed + 2)), Monitor: look >= 0, Look: time.Duration(max(look, 0)) * time.Millisecond,
		Order: values.Int(viewed + 4),
	}
	rest := viewed + 6
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

// run runs a script and gives up waiting when ctx ends. It drops a reply that comes later.
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
const viewed = 11

func viewOf(values store.Values) View {
	return View{
		Now: store.FromMs(values.Int(0)), Leader: values.Text(1), LeaderGen: values.Int(2),
		Epoch: values.Int(3), Open: values.Int(4) == 1, Lanes: values.Int(5), Schedules: values.Int(6),
		Forgot: values.Text(7) != "", Kept: store.FromMs(values.Int(7)), May: values.Int(8) == 1,
		Back: store.FromMs(values.Int(9)), State: states[values.Text(10)],
	}
}
