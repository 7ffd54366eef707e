package queue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

var (
	errandBeginScript = store.NewScript("errand_begin", store.Careful, source("lib_errand"), source("errand_begin"))
	errandTakeScript  = store.NewScript("errand_take", store.Careful, source("lib_errand"), source("errand_take"))
	errandNoteScript  = store.NewScript("errand_note", store.Careful, source("lib_errand"), source("errand_note"))
	errandAskScript   = store.NewScript("errand_ask", store.Careful, source("lib_errand"), source("errand_ask"))
)

const (
	// ErrandsKept is how long an errand is kept after it was last changed.
	ErrandsKept = 7 * 24 * time.Hour
	// ErrandSilence is how long the worker of an errand may note nothing. Then another may take it.
	ErrandSilence = 45 * time.Second

	errandsCap    = 100
	errandsOpen   = 16
	errandsOfOne  = 4
	longestErrand = 4 << 10 // bytes of what is asked
)

// ErrandState is where an errand is.
type ErrandState string

// The states.
const (
	ErrandWaiting ErrandState = "waiting" // for somebody who works on it
	ErrandRunning ErrandState = "running"
	ErrandStopped ErrandState = "stopped" // by a person; it can go on
	ErrandFailed  ErrandState = "failed"  // it can go on
	ErrandDone    ErrandState = "done"
)

// Open reports whether there is more to do, and somebody is to do it.
func (s ErrandState) Open() bool { return s == ErrandWaiting || s == ErrandRunning }

// Errand is work on many tasks, which goes on from where it was noted last, on whichever instance takes it.
type Errand struct {
	ID    string
	State ErrandState
	By    string    // who began it
	Begun time.Time // when
	At    time.Time // of the last note
	Asked []byte    // what is to be done, in JSON

	Matched, Changed, Unreadable int
	Cursor                       string // where it goes on
	Said                         string // who stopped it, or why it failed

	turn int64
}

// BeginErrand notes an errand that somebody is to work on, and returns its ID. An ID that the caller chose is that of one errand: to
// begin it again changes nothing. BeginErrand returns [ErrErrands] if 16 are open, or 4 of the same actor, and a [*task.FieldError] for
// what takes over 4 KiB.
func (q *Queue) BeginErrand(ctx context.Context, id string, asked []byte) (string, error) {
	if id == "" {
		id = strings.ToLower(rand.Text()[:20])
	}
	if len(asked) > longestErrand {
		return "", &task.FieldError{Field: "filter", Reason: "too long", Hint: fmt.Sprintf("%d bytes at most, in JSON", longestErrand)}
	}
	v, err := errandBeginScript.Run(ctx, q.rdb, []string{q.keys.Errands}, []any{
		id, oneLine(Actor(ctx)), asked, errandsOpen, errandsOfOne, errandsCap, ErrandsKept.Milliseconds(),
	})
	if err == nil {
		_, err = errandReply(v)
	}
	if err != nil {
		return "", fmt.Errorf("begin an errand: %w", err)
	}
	return id, nil
}

// errandReply reads the answer of a script, of which two words say that there are too many.
func errandReply(v any) (string, error) {
	r := store.NewReply(v)
	r.Int()
	switch said := r.Text(); said {
	case "all":
		return said, fmt.Errorf("%w: %d at most", ErrErrands, errandsOpen)
	case "own":
		return said, fmt.Errorf("%w: %d of one sender at most", ErrErrands, errandsOfOne)
	default:
		return said, r.Err
	}
}

// oneLine returns a name as a record can hold it.
func oneLine(name string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' {
			return ' '
		}
		return c
	}, name)
}

// Errands returns the errands that are kept, in no order: at most 100. It leaves out what cannot be read. A running one whose worker is
// silent counts as waiting.
func (q *Queue) Errands(ctx context.Context) ([]Errand, error) {
	pipe := q.rdb.Pipeline()
	clock, all := pipe.Time(ctx), pipe.HGetAll(ctx, q.keys.Errands)
	if err := exec(ctx, pipe); err != nil {
		return nil, fmt.Errorf("list the errands: %w", err)
	}
	var list []Errand
	for id, text := range all.Val() {
		if e, ok := parseErrand(id, text); ok {
			list = append(list, e.asOf(clock.Val()))
		}
	}
	return list, nil
}

// Errand returns one of them, or [ErrNotFound].
func (q *Queue) Errand(ctx context.Context, id string) (Errand, error) {
	pipe := q.rdb.Pipeline()
	clock, one := pipe.Time(ctx), pipe.HGet(ctx, q.keys.Errands, id)
	if err := exec(ctx, pipe); err != nil {
		return Errand{}, fmt.Errorf("errand %q: %w", id, err)
	}
	e, ok := parseErrand(id, one.Val())
	if !ok {
		return Errand{}, fmt.Errorf("errand %q: %w", id, ErrNotFound)
	}
	return e.asOf(clock.Val()), nil
}

// asOf returns the errand as it is at a moment.
func (e Errand) asOf(now time.Time) Errand {
	if e.State == ErrandRunning && now.Sub(e.At).Abs() >= ErrandSilence {
		e.State = ErrandWaiting
	}
	return e
}

// parseErrand reads a record of lib_errand.lua.
func parseErrand(id, text string) (e Errand, ok bool) {
	parts := strings.Split(text, "\t")
	if len(parts) != 5 {
		return e, false
	}
	head := strings.Fields(parts[0])
	if len(head) != 7 {
		return e, false
	}
	var n [6]int64
	for i := range n {
		v, err := strconv.ParseInt(head[i+1], 10, 64)
		if err != nil || v < 0 {
			return e, false
		}
		n[i] = v
	}
	e = Errand{
		ID: id, State: ErrandState(head[0]), By: parts[1], Asked: []byte(parts[2]), turn: n[0],
		Begun: store.FromMs(store.ClampMs(float64(n[1]))), At: store.FromMs(store.ClampMs(float64(n[2]))),
		Matched: int(n[3]), Changed: int(n[4]), Unreadable: int(n[5]),
	}
	ok = unquote(parts[3], &e.Cursor) && unquote(parts[4], &e.Said)
	return e, ok
}

// unquote reads a text of a record: nothing, or JSON.
func unquote(text string, to *string) bool {
	return text == "" || json.Unmarshal([]byte(text), to) == nil
}

// quote writes a text so that a record can hold it.
func quote(text string) string {
	if text == "" {
		return ""
	}
	b, _ := json.Marshal(text) //nolint:errchkjson // a string is always JSON
	return string(b)
}

// TakeErrand gives the caller an errand to work on: the oldest one that waits, or whose worker has been silent for
// [ErrandSilence]. Nobody else gets it until the caller is silent itself. ok is false if there is none.
func (q *Queue) TakeErrand(ctx context.Context) (e Errand, ok bool, err error) {
	n, err := q.rdb.HLen(ctx, q.keys.Errands).Result()
	if err != nil || n == 0 {
		return e, false, store.Classify(err)
	}
	v, err := errandTakeScript.Run(ctx, q.rdb, []string{q.keys.Errands}, []any{ErrandSilence.Milliseconds(), ErrandsKept.Milliseconds()})
	if err != nil {
		return e, false, fmt.Errorf("take an errand: %w", err)
	}
	r := store.NewReply(v)
	r.Int()
	if !r.More() {
		return e, false, r.Err
	}
	id, text := r.Text(), r.Text()
	e, ok = parseErrand(id, text)
	return e, ok, r.Err
}

// NoteErrand notes how far the errand is that the caller took. With the state Waiting it leaves it to another. The errand then has the
// state in which it is: Stopped if a person has stopped it meanwhile. held is false if another worker has it: then nothing is noted.
func (q *Queue) NoteErrand(ctx context.Context, e *Errand) (held bool, err error) {
	counts := fmt.Sprintf("%d %d %d", e.Matched, e.Changed, e.Unreadable)
	v, err := errandNoteScript.Run(ctx, q.rdb, []string{q.keys.Errands}, []any{
		e.ID, e.turn, string(e.State), counts, quote(e.Cursor), quote(e.Said), ErrandsKept.Milliseconds(),
	})
	if err != nil {
		return true, fmt.Errorf("note how far errand %q is: %w", e.ID, err)
	}
	r := store.NewReply(v)
	r.Int()
	state := r.Text()
	if r.Err != nil || state == "lost" {
		return false, r.Err
	}
	e.State = ErrandState(state)
	return true, nil
}

// StopErrand stops an errand in the name of the actor: its worker does nothing more after the page that it is at. One that has ended
// stays as it is. It returns [ErrNotFound] if there is none.
func (q *Queue) StopErrand(ctx context.Context, id string) error {
	return q.askOfErrand(ctx, id, "stop", oneLine(Actor(ctx)))
}

// ResumeErrand lets an errand that was stopped, or that has failed, go on where it was. Another stays as it is. It returns [ErrNotFound]
// if there is none, and [ErrErrands] as BeginErrand does.
func (q *Queue) ResumeErrand(ctx context.Context, id string) error {
	return q.askOfErrand(ctx, id, "resume", "")
}

func (q *Queue) askOfErrand(ctx context.Context, id, what, said string) error {
	v, err := errandAskScript.Run(ctx, q.rdb, []string{q.keys.Errands}, []any{
		id, what, quote(said), errandsOpen, errandsOfOne, ErrandsKept.Milliseconds(),
	})
	if err == nil {
		var answer string
		if answer, err = errandReply(v); answer == "none" {
			err = ErrNotFound
		}
	}
	if err != nil {
		return fmt.Errorf("%s errand %q: %w", what, id, err)
	}
	return nil
}
