package queue

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// ListOptions say which tasks to list. The zero value lists the first 100.
type ListOptions struct {
	// Queue, Type, Schedule and Key list only tasks of that queue, type, schedule and key. Empty: any. In the first three a * stands for
	// any text; no name has one.
	Queue, Type, Schedule, Key string
	// Error lists only tasks whose last error has the cause of this one; see [task.Cause]. A * in it stands for any text. Empty: any.
	Error string
	// Backfill lists only tasks of backfills.
	Backfill bool
	// Limit is the most tasks on a page. Default 100; more than 1000 counts as 1000.
	Limit int
	// After is the Next of the previous page.
	After string
	// Part lists only a part of the due tasks, as of Now.
	Part Part
	Now  time.Time
	// Had is how many bytes of records the caller has already, of other lists whose tasks share a page with these.
	Had int

	cause string // of Error
}

// BackfillMark ends the ID of a task of a backfill.
const BackfillMark = "+backfill"

// Part is a part of the due tasks.
type Part byte

// The parts. A task that is due later is in one of the last two; only its record says in which.
const (
	AllDue  Part = iota
	DueNow       // the due time has come, or the task waits for its key
	Retried      // due later, and an attempt has ended
	Fresh        // due later, and no attempt has ended
)

// later reports whether only tasks that are due later are meant.
func (o *ListOptions) later() bool { return o.Part == Retried || o.Part == Fresh }

func (o ListOptions) withDefaults() ListOptions {
	if o.Limit <= 0 {
		o.Limit = 100
	}
	o.Limit = min(o.Limit, 1000)
	o.cause = task.Cause(o.Error)
	return o
}

// Page is one page of a list.
type Page struct {
	Tasks []Found
	// Next is the After of the next page, or "" if this page is the last.
	Next string
	// Bytes is how many bytes the records of the tasks have.
	Bytes int

	at   []cursor // of each task
	read int      // bytes of records that were read for it
}

// isFull reports whether a page takes no more tasks.
func (p *Page) isFull(o *ListOptions) bool {
	return len(p.Tasks) == o.Limit || p.read >= scanBytes || len(p.Tasks) > 0 && o.Had+p.Bytes >= PageBytes
}

// scanMost is the most tasks that List looks at for one page.
const scanMost = 20_000

// List reads a page of the tasks in a state. Due tasks come in due order, followed by those that wait for their key.
// Running tasks come with the longest running first, dead ones with the newest first, and done ones with the one that is
// kept the longest first.
//
// A page may be short, even empty, and still have a Next: List looks at no more than 20,000 tasks for one page, reads no more than
// about 64 MiB of records, and ends a page with the task that fills [PageBytes]. A
// task that moves meanwhile may be missed. List lists a task whose record cannot be read by its ID alone, unless a filter
// is set.
//
// List returns a [*task.FieldError] for an After that is not a cursor, and for an unknown state.
func (q *Queue) List(ctx context.Context, state task.State, opts ListOptions) (Page, error) {
	o := opts.withDefaults()
	after, err := parseCursor(o.After)
	if err != nil {
		return Page{}, fmt.Errorf("list %s tasks: %w", state, err)
	}
	var p Page
	switch state {
	case task.Due:
		p, err = q.listDue(ctx, &o, after)
	case task.Running:
		p, err = q.listRunning(ctx, &o, after)
	case task.Dead:
		p, err = q.listEnded(ctx, q.keys.Dead, state, &o, after)
	case task.Done:
		p, err = q.listEnded(ctx, q.keys.Done, state, &o, after)
	default:
		_, err = task.ParseState(string(state))
	}
	if err != nil {
		return Page{}, fmt.Errorf("list %s tasks: %w", state, err)
	}
	return p, nil
}

// cursor is the last place that a page looked at, in an order of scores and members. The zero value is before all.
type cursor struct {
	kind   byte // 't': a task; 'h': a member of held; 0: none
	score  float64
	member string
}

func (c cursor) String() string {
	if c.kind == 0 {
		return ""
	}
	s := string(c.kind) + strconv.FormatFloat(c.score, 'f', -1, 64) + " " + c.member
	return base64.RawURLEncoding.EncodeToString([]byte(s))
}

func parseCursor(s string) (cursor, error) {
	if s == "" {
		return cursor{}, nil
	}
	bad := &task.FieldError{Field: "after", Value: s, Reason: "not a cursor", Hint: "pass the next that the page before returned"}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) < 3 || b[0] != 't' && b[0] != 'h' {
		return cursor{}, bad
	}
	score, member, ok := strings.Cut(string(b[1:]), " ")
	at, err := strconv.ParseFloat(score, 64)
	if err != nil || !ok || math.IsNaN(at) {
		return cursor{}, bad
	}
	return cursor{kind: b[0], score: at, member: member}, nil
}

// listEnded pages backwards through a zset of tasks that have ended.
func (q *Queue) listEnded(ctx context.Context, key string, state task.State, o *ListOptions, after cursor) (Page, error) {
	end, err := q.rdb.ZCard(ctx, key).Result()
	if err != nil {
		return Page{}, store.Classify(err)
	}
	if after.kind != 0 {
		ends, err := q.seek(ctx, []string{key}, after, false)
		if err != nil {
			return Page{}, err
		}
		end = ends[0]
	}
	var p Page
	for looked := 0; end > 0 && looked < scanMost; {
		rows, err := q.rdb.ZRangeWithScores(ctx, key, max(end-int64(o.Limit), 0), end-1).Result()
		if err != nil {
			return Page{}, store.Classify(err)
		}
		if len(rows) == 0 {
			return p, nil
		}
		slices.Reverse(rows)
		end -= int64(len(rows))
		looked += len(rows)
		list := make([]row, 0, len(rows))
		for _, z := range rows {
			r := rowOf(z)
			list = append(list, row{id: r.id, score: r.score, found: Found{State: state, At: store.FromMs(store.ClampMs(r.score))}})
		}
		n, err := q.appendRecords(ctx, &p, list, o)
		if err != nil {
			return Page{}, err
		}
		if last := list[n-1]; n < len(list) || end > 0 {
			p.Next = cursor{kind: 't', score: last.score, member: last.id}.String()
		} else {
			p.Next = ""
		}
		if p.isFull(o) {
			return p, nil
		}
	}
	return p, nil
}

// row is one task on its way to a page.
type row struct {
	id    string
	score float64
	found Found // without the task
	claim string
	by    generation
	held  string // its member of held
}

// at is the place of a row.
func (r *row) at() cursor {
	if r.held != "" {
		return cursor{kind: 'h', member: r.held}
	}
	return cursor{kind: 't', score: r.score, member: r.id}
}

func rowOf(z redis.Z) row {
	id, _ := z.Member.(string)
	return row{id: id, score: z.Score}
}

// appendRecords reads the records of rows and appends the tasks that match, until the page is full. It returns how many
// rows it used.
func (q *Queue) appendRecords(ctx context.Context, p *Page, rows []row, o *ListOptions) (used int, err error) {
	var wanted []string
	for _, r := range rows {
		if o.mayBe(r.id) {
			wanted = append(wanted, r.id)
		}
	}
	var records []any
	for i, r := range rows {
		if p.isFull(o) {
			return i, nil
		}
		if !o.mayBe(r.id) {
			continue
		}
		if len(records) == 0 {
			if records, err = q.pageRecords(ctx, p, wanted, o); err != nil {
				return 0, err
			}
			wanted = wanted[len(records):]
		}
		rec, ok := records[0].(string)
		records = records[1:]
		if !ok {
			continue // the task left meanwhile
		}
		t := &task.Task{ID: r.id}
		unreadable := task.Decode(rec, t)
		damaged := unreadable != nil
		if damaged {
			*t = task.Task{ID: r.id}
		}
		if damaged && (o.Part == Retried || *o != (ListOptions{Limit: o.Limit, After: o.After, Part: o.Part, Now: o.Now, Had: o.Had})) || !damaged && !o.match(t) {
			continue
		}
		f := r.found
		f.Task, f.Unreadable = t, unreadable
		switch f.State {
		case task.Due:
			f = foundDue(t, r.score)
			f.Held = r.found.Held
		case task.Running:
			f = foundRunning(t, r.claim, r.by)
		}
		p.Tasks, p.at = append(p.Tasks, f), append(p.at, r.at())
		p.Bytes += len(rec)
	}
	return len(rows), nil
}

// pageRecords reads the next records for a page, and tells the caller how many bytes the page has with them.
func (q *Queue) pageRecords(ctx context.Context, p *Page, ids []string, o *ListOptions) ([]any, error) {
	records, err := q.records(ctx, ids)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, r := range records {
		text, _ := r.(string)
		size += len(text)
	}
	p.read += size
	return records, holds(ctx, o.Had+p.Bytes+size)
}

// Held is a claim: that an instance runs a task, and since when.
type Held struct {
	ID       string
	At       time.Time
	Gen      int64
	Instance string // "" for one that is lost, until its tasks are taken back
}

// Running returns the claims of all generations, without the records of their tasks, in no order. There are no more of them than
// workers.
func (q *Queue) Running(ctx context.Context) ([]Held, error) {
	rows, err := q.runningRows(ctx)
	list := make([]Held, len(rows))
	for i, r := range rows {
		list[i] = Held{ID: r.id, At: store.FromMs(int64(r.score)), Gen: r.by.gen, Instance: r.by.instance}
	}
	return list, err
}

func (q *Queue) runningRows(ctx context.Context) ([]row, error) {
	gens, err := q.generations(ctx)
	if err != nil {
		return nil, err
	}
	pipe := q.rdb.Pipeline()
	all := make([]*redis.MapStringStringCmd, len(gens))
	for i, g := range gens {
		all[i] = pipe.HGetAll(ctx, q.keys.Running(g.gen))
	}
	if len(gens) > 0 {
		if err := exec(ctx, pipe); err != nil {
			return nil, err
		}
	}
	var rows []row
	for i, g := range gens {
		for id, value := range all[i].Val() {
			if id == "" { // the entry of the last seq
				continue
			}
			_, at, _, _ := parseClaim(value)
			rows = append(rows, row{id: id, score: float64(store.Ms(at)), claim: value, by: g, found: Found{State: task.Running}})
		}
	}
	return rows, nil
}

// listRunning lists the claims of all generations. There are no more of them than workers, so it reads them all for each
// page.
func (q *Queue) listRunning(ctx context.Context, o *ListOptions, after cursor) (Page, error) {
	rows, err := q.runningRows(ctx)
	if err != nil {
		return Page{}, err
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.id, b.id)) })
	if after.kind != 0 {
		from, found := slices.BinarySearchFunc(rows, after, func(r row, c cursor) int {
			return cmp.Or(cmp.Compare(r.score, c.score), cmp.Compare(r.id, c.member))
		})
		if found {
			from++
		}
		rows = rows[from:]
	}
	var p Page
	for len(rows) > 0 && !p.isFull(o) {
		part := rows[:min(len(rows), MaxBatch)]
		n, err := q.appendRecords(ctx, &p, part, o)
		if err != nil {
			return Page{}, err
		}
		if n < len(rows) {
			p.Next = cursor{kind: 't', score: rows[n-1].score, member: rows[n-1].id}.String()
		} else {
			p.Next = ""
		}
		rows = rows[n:]
	}
	return p, nil
}

// generations reads which generations may hold claims.
func (q *Queue) generations(ctx context.Context) ([]generation, error) {
	pipe := q.rdb.Pipeline()
	members := pipe.HGetAll(ctx, q.keys.Members)
	orphans := pipe.ZRange(ctx, q.keys.Orphans, 0, -1)
	if err := exec(ctx, pipe); err != nil {
		return nil, err
	}
	return generations(members.Val(), orphans.Val()), nil
}
