package queue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

var (
	bulkAskScript  = store.NewScript("bulk_ask", store.Careful, WakeLib, source("lib_bulk"), source("bulk_ask"))
	bulkNoteScript = store.NewScript("bulk_note", store.Careful, source("lib_bulk"), source("bulk_note"))
)

const (
	// BulkKept is how long a bulk action is kept after its last change.
	BulkKept = 7 * 24 * time.Hour
	// BulkSilence is how long the worker of a bulk action may note nothing. Then it counts as lost.
	BulkSilence = 45 * time.Second

	bulksCap   = 100
	bulksOpen  = 64
	bulksOfOne = 16

	longestFilter = 4 << 10 // bytes in JSON
)

// The states of a bulk action.
const (
	BulkWaiting = "waiting" // for an instance that works on it
	BulkRunning = "running"
	BulkStopped = "stopped" // by a person; it can go on
	BulkFailed  = "failed"  // it can go on
	BulkDone    = "done"
)

// Bulk is one action on many tasks. The record says how far it is; a task of the type [task.BulkType] works on it.
type Bulk struct {
	ID     string
	Action string
	Filter []byte // in JSON
	About  int    // how many tasks its sender has counted
	By     string // who began it
	Reason string // why, or ""

	State string
	Begun time.Time
	At    time.Time // of the last note

	Matched, Changed, Unreadable int
	// Short: the counts may lack the changes of a call whose answer nobody got, because the worker or Redis was lost.
	Short  bool
	Cursor string // where it goes on
	Said   string // who stopped it, or why it failed

	turn  string // the task of each turn is another one
	fence int64
}

// Open reports whether there is more to do.
func (b *Bulk) Open() bool { return b.State == BulkWaiting || b.State == BulkRunning }

// bulkTaskID names the task of one turn. A bulk action that goes on after its end has a new one.
func bulkTaskID(id, turn string) string { return task.BulkType + ":" + id + ":" + turn }

// parseBulkTask reads the ID of a task that works on a bulk action.
func parseBulkTask(taskID string) (id, turn string, ok bool) {
	rest, ok := strings.CutPrefix(taskID, task.BulkType+":")
	at := strings.LastIndexByte(rest, ':')
	if !ok || at < 1 {
		return "", "", false
	}
	return rest[:at], rest[at+1:], true
}

func newBulkName() string { return strings.ToLower(rand.Text()[:20]) }

// The attempts at a bulk action. Only an attempt that ends with its instance, or with a bug, counts.
const bulkAttempts = 20

var bulkSpacing = task.Backoff{Base: time.Second, Cap: time.Minute}

// BeginBulk begins a bulk action, in the name of the actor: it adds the task that does it to a queue. An ID that the caller chose is that
// of one bulk action: to begin it again changes nothing. BeginBulk returns [ErrBulks] if 64 are open, or 16 of the same actor, and a
// [*task.FieldError] for a filter over 4 KiB.
func (q *Queue) BeginBulk(ctx context.Context, b Bulk, queue string) (Bulk, error) {
	if b.ID == "" {
		b.ID = newBulkName()
	}
	if len(b.Filter) > longestFilter {
		return Bulk{}, &task.FieldError{Field: "filter", Reason: "too long", Hint: fmt.Sprintf("%d bytes at most, in JSON", longestFilter)}
	}
	if err := CheckReason(b.Reason); err != nil {
		return Bulk{}, err
	}
	b.By, b.Reason = oneLine(Actor(ctx)), oneLine(b.Reason)
	return q.addBulk(ctx, "begin", b, queue)
}

// ResumeBulk lets a bulk action that was stopped, or that has failed, go on where it was. Another stays as it is. It returns
// [task.ErrNotFound] if there is none, and [ErrBulks] as BeginBulk does.
func (q *Queue) ResumeBulk(ctx context.Context, id, queue string) (Bulk, error) {
	b, err := q.Bulk(ctx, id)
	if err != nil {
		return b, err
	}
	return q.addBulk(ctx, "resume", b, queue)
}

// addBulk asks for what may add the task of a bulk action.
func (q *Queue) addBulk(ctx context.Context, ask string, b Bulk, queue string) (Bulk, error) {
	payload, err := json.Marshal(bulkPayload{b.Action, b.Filter, b.By, b.Reason})
	if err != nil {
		return b, err
	}
	turn := newBulkName()
	return q.askBulk(ctx, ask, b, turn, &task.Task{
		ID: bulkTaskID(b.ID, turn), Type: task.BulkType, Payload: payload, Queue: queue, Priority: task.High, Keep: -1,
		MaxAttempts: bulkAttempts, Backoff: bulkSpacing, Timeout: BulkKept, Created: time.Now(),
	})
}

// bulkPayload is for people who look at the task: its worker goes by the record, which outlives it.
type bulkPayload struct {
	Action string          `json:"action"`
	Filter json.RawMessage `json:"filter"`
	By     string          `json:"by,omitempty"`
	Reason string          `json:"reason,omitempty"`
}

// StopBulk stops a bulk action in the name of the actor: its worker does nothing more after the page that it is at. An action that
// has ended stays as it is. StopBulk returns [task.ErrNotFound] if there is none.
func (q *Queue) StopBulk(ctx context.Context, id string) (Bulk, error) {
	b, err := q.askBulk(ctx, "stop", Bulk{ID: id}, "", &task.Task{})
	if err == nil && b.State == BulkStopped { // if this fails, the run learns that it is void
		_, _ = q.cancel(InBulk(ctx), bulkTaskID(b.ID, b.turn), "its bulk action was stopped", cancelAll)
	}
	return b, err
}

func (q *Queue) askBulk(ctx context.Context, ask string, b Bulk, turn string, t *task.Task) (Bulk, error) {
	k := &q.keys
	lane := LaneOf(t)
	v, err := bulkAskScript.Run(ctx, q.rdb, []string{k.Bulk, k.Tasks, k.Dead, k.Events, k.Lanes, k.Meta, k.Watch, k.Due(lane)}, []any{
		b.ID, ask, oneLine(Actor(ctx)), b.Action, b.Filter, b.About, bulksOpen, bulksOfOne, bulksCap, BulkKept.Milliseconds(),
		BulkSilence.Milliseconds(), q.caps.Events, turn, k.Wake, lane.String(), encodeSealed(nil, t, q.seal), b.Reason,
	})
	if err == nil {
		r := store.NewReply(v)
		r.Int()
		switch said := r.Text(); said {
		case "all":
			err = fmt.Errorf("%w: %d at most", ErrBulks, bulksOpen)
		case "own":
			err = fmt.Errorf("%w: %d of one sender at most", ErrBulks, bulksOfOne)
		case "none":
			err = task.ErrNotFound
		default:
			b, _ = parseBulk(b.ID, r.Text())
			err = r.Err
		}
	}
	if err != nil {
		return Bulk{}, fmt.Errorf("%s bulk action %q: %w", ask, b.ID, err)
	}
	return b, nil
}

// ClaimBulk gives a bulk action to the run of one of its tasks. ok is false if that run is void: a later claim, a later turn or another
// worker has it, or it has ended.
func (q *Queue) ClaimBulk(ctx context.Context, t *task.Task) (b Bulk, ok bool, err error) {
	id, turn, ok := parseBulkTask(t.ID)
	if !ok {
		return b, false, nil
	}
	b = Bulk{ID: id, turn: turn, fence: t.Fence}
	ok, err = q.noteBulk(ctx, &b, "take")
	return b, ok, err
}

// NoteBulk notes how far a bulk action is. With the state Waiting the caller leaves it to another worker. The bulk action then has the
// state in which it is: Stopped if a person has stopped it meanwhile. held is false if another worker has it: then nothing is noted.
func (q *Queue) NoteBulk(ctx context.Context, b *Bulk) (held bool, err error) {
	return q.noteBulk(ctx, b, b.State)
}

func (q *Queue) noteBulk(ctx context.Context, b *Bulk, state string) (held bool, err error) {
	v, err := bulkNoteScript.Run(ctx, q.rdb, []string{q.keys.Bulk, q.keys.Events}, []any{
		b.ID, b.turn, b.fence, state, b.Matched, b.Changed, b.Unreadable, oneLine(b.Cursor), oneLine(b.Said), BulkKept.Milliseconds(), q.caps.Events, b.Short,
	})
	if err != nil {
		return true, fmt.Errorf("note how far bulk action %q is: %w", b.ID, err)
	}
	r := store.NewReply(v)
	r.Int()
	if r.Text() == "lost" || r.Err != nil {
		return false, r.Err
	}
	now, ok := parseBulk(b.ID, r.Text())
	if !ok || r.Err != nil {
		return false, r.Err
	}
	*b = now
	return true, nil
}

// oneLine returns a text as a record can hold it.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' {
			return ' '
		}
		return c
	}, text)
}

// Bulks returns the bulk actions that are kept, in no order: at most 100. It leaves out those that cannot be read.
func (q *Queue) Bulks(ctx context.Context) ([]Bulk, error) {
	pipe := q.rdb.Pipeline()
	clock, err := store.PipeNow(ctx, q.rdb, q.keys.Bulk, pipe)
	if err != nil {
		return nil, fmt.Errorf("list the bulk actions: %w", err)
	}
	all := pipe.HGetAll(ctx, q.keys.Bulk)
	if err := exec(ctx, pipe); err != nil {
		return nil, fmt.Errorf("list the bulk actions: %w", err)
	}
	var list []Bulk
	for id, text := range all.Val() {
		if b, ok := parseBulk(id, text); ok {
			list = append(list, b)
		}
	}
	return list, q.judgeSilent(ctx, list, clock())
}

// Bulk returns one of them, or [task.ErrNotFound].
func (q *Queue) Bulk(ctx context.Context, id string) (Bulk, error) {
	pipe := q.rdb.Pipeline()
	clock, err := store.PipeNow(ctx, q.rdb, q.keys.Bulk, pipe)
	if err != nil {
		return Bulk{}, fmt.Errorf("bulk action %q: %w", id, err)
	}
	one := pipe.HGet(ctx, q.keys.Bulk, id)
	if err := exec(ctx, pipe); err != nil {
		return Bulk{}, fmt.Errorf("bulk action %q: %w", id, err)
	}
	b, ok := parseBulk(id, one.Val())
	if !ok {
		return Bulk{}, fmt.Errorf("bulk action %q: %w", id, task.ErrNotFound)
	}
	list := []Bulk{b}
	err = q.judgeSilent(ctx, list, clock())
	return list[0], err
}

// judgeSilent sets the state of each open bulk action whose worker is silent: it waits if its task goes on, has failed if that died, and
// was stopped if that is gone.
func (q *Queue) judgeSilent(ctx context.Context, list []Bulk, now time.Time) error {
	for i := range list {
		b := &list[i]
		if !b.Open() || now.Sub(b.At).Abs() < BulkSilence {
			continue
		}
		pipe := q.rdb.Pipeline()
		record, died := pipe.HGet(ctx, q.keys.Tasks, bulkTaskID(b.ID, b.turn)), pipe.ZScore(ctx, q.keys.Dead, bulkTaskID(b.ID, b.turn))
		if err := exec(ctx, pipe); err != nil {
			return fmt.Errorf("bulk action %q: %w", b.ID, err)
		}
		t := task.Task{}
		switch {
		case errors.Is(record.Err(), redis.Nil):
			b.State = BulkStopped
		case died.Err() == nil:
			b.State = BulkFailed
			if task.Decode(record.Val(), &t) == nil {
				b.Said = t.LastError()
			}
		default:
			b.State = BulkWaiting
		}
	}
	return nil
}

// parseBulk reads a record of lib_bulk.lua.
func parseBulk(id, text string) (b Bulk, ok bool) {
	parts := strings.Split(text, "\t")
	if len(parts) == 5 { // without a reason
		parts = append(parts, "")
	}
	if len(parts) != 6 {
		return b, false
	}
	head := strings.Fields(parts[0])
	if len(head) != 11 {
		return b, false
	}
	var n [7]int64
	for i := range n {
		v, err := strconv.ParseInt(head[i+3], 10, 64)
		if err != nil || v < 0 {
			return b, false
		}
		n[i] = v
	}
	return Bulk{
		ID: id, State: head[0], Action: head[1], turn: head[2], fence: n[0],
		Begun: store.FromMs(store.ClampMs(float64(n[1]))), At: store.FromMs(store.ClampMs(float64(n[2]))), About: int(n[3]),
		Matched: int(n[4]), Changed: int(n[5]), Unreadable: int(n[6]), Short: head[10] == "1",
		By: parts[1], Filter: []byte(parts[2]), Cursor: parts[3], Said: parts[4], Reason: parts[5],
	}, true
}
