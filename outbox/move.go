package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

const (
	// maxBatch bounds the rows of a batch, and batchBytes the bytes of their records, if there are several.
	maxBatch   = 500
	batchBytes = 4 << 20
	// besidePayload is more than a row holds besides its payload.
	besidePayload = 1 << 20
)

// row is a row of the table whose task can be moved.
type row struct {
	id    int64
	mark  string
	task  *task.Task
	part  int  // the index of its partition
	added bool // the task is in Redis
}

// refusal is a row whose task cannot be moved, ever.
type refusal struct {
	row
	err error
}

// move moves one batch, in a transaction, and returns how many rows it dealt with.
func (m *Mover) move(ctx context.Context) (n int, err error) {
	began, err := m.clocks(ctx) // before the rows are locked; and no row is locked while Redis is away
	if err != nil {
		return 0, err
	}
	if len(m.passed()) >= maxStuck {
		return 0, errStuck
	}
	tx, err := m.db.BeginTx(ctx, m.d.options)
	if err != nil {
		return 0, fmt.Errorf("begin to move: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	rows, refused, err := m.take(ctx, tx)
	if err != nil {
		return 0, fmt.Errorf("take rows of the outbox: %w", err)
	}
	rows, aside := m.reachable(rows, began)
	results, failure := m.add(ctx, rows, began)
	late := ctx.Err() != nil || errors.Is(failure, queue.ErrLate) // no partition is to blame
	if left := rows[len(results):]; len(left) > 0 && len(m.parts) > 1 && !late && passing(failure) {
		for _, r := range left {
			m.leaves(r.part, failure).rows.pass(r.id, time.Now())
		}
		rows, aside, failure = rows[:len(results)], aside+len(left), nil
	}
	b := batch{m: m, rows: rows[:len(results)], refused: refused}
	b.judge(results)
	if failure != nil && b.isCulprit(failure, rows) {
		failure = b.accuse(refusal{rows[0], failure})
	}
	n = len(b.rows) + len(b.refused) + len(b.stuck)
	if n == 0 {
		return aside, failure
	}
	most := m.most
	if err := b.commit(ctx, tx); err != nil {
		return 0, err
	}
	b.tell(ctx)
	if failure != nil { // the batch that fails comes again, and smaller
		m.most = min(m.most, most)
	}
	return n + aside, failure
}

// add adds the tasks of rows to Redis, those of all partitions side by side: one that is away holds up no other. It sorts rows so that the
// results are those of the first rows: after an error, rows that were not dealt with are the last.
func (m *Mover) add(ctx context.Context, rows []row, began []time.Time) (results []producer.Result, failure error) {
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.part, b.part) })
	type group struct {
		rows []row
		got  []producer.Result
		err  error
	}
	var groups []*group
	var all sync.WaitGroup
	for list := range chunks(rows) {
		g := &group{rows: list}
		groups = append(groups, g)
		all.Go(func() {
			tasks := make([]*task.Task, len(list))
			marks := make(map[*task.Task]string, len(list))
			for i, r := range list {
				tasks[i], marks[r.task] = r.task, r.mark
			}
			g.got, g.err = m.parts[list[0].part].Producer.Move(ctx, tasks, began[list[0].part], marks)
		})
	}
	all.Wait()
	var left []row
	dealt := rows[:0:0]
	for _, g := range groups {
		results, dealt, left = append(results, g.got...), append(dealt, g.rows[:len(g.got)]...), append(left, g.rows[len(g.got):]...)
		if g.err != nil && (failure == nil || passing(failure)) {
			failure = g.err
		}
	}
	copy(rows, append(dealt, left...))
	return results, failure
}

// chunks yields the rows of each partition, of rows in the order of partitions.
func chunks(rows []row) iter.Seq[[]row] {
	return func(yield func([]row) bool) {
		for len(rows) > 0 {
			n := 1
			for n < len(rows) && rows[n].part == rows[0].part {
				n++
			}
			if !yield(rows[:n]) {
				return
			}
			rows = rows[n:]
		}
	}
}

// take locks rows and reads them. Rows whose tasks cannot be enqueued come apart from the others.
func (m *Mover) take(ctx context.Context, tx *sql.Tx) (rows []row, refused []refusal, err error) {
	if m.d.bounds != "" {
		if _, err := tx.ExecContext(ctx, m.d.bounds); err != nil {
			return nil, nil, err
		}
	}
	ids, large, err := m.lock(ctx, tx)
	if err != nil {
		return nil, nil, err
	}
	if refused, err = m.name(ctx, tx, large); err != nil || len(ids) == 0 {
		return nil, refused, err
	}
	list, err := tx.QueryContext(ctx, m.d.read, listed(ids))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = list.Close() }()
	for list.Next() {
		r := row{task: &task.Task{}}
		var record []byte
		var delay, window int64
		var id, key string
		if err := list.Scan(&r.id, &id, &record, &r.mark, &delay, &key, &window); err != nil {
			return nil, nil, err
		}
		err := decode(r.task, id, record)
		r.task.Delay, r.task.UniqueKey, r.task.UniqueFor = ms(delay), key, ms(window)
		if err == nil {
			err = task.CheckID("mark", r.mark)
		}
		if err == nil {
			err = m.check(r.task)
		}
		if err == nil {
			r.part, err = m.where(r.task)
			r.part--
		}
		if err != nil {
			refused = append(refused, refusal{r, err})
			continue
		}
		rows = append(rows, r)
	}
	return rows, refused, list.Err()
}

// lock locks the first rows that are not passed over, and returns as many as one batch may have. Rows that are larger than any that
// could be moved come apart, with their sizes: to read one might take longer than a batch may.
func (m *Mover) lock(ctx context.Context, tx *sql.Tx) (ids []int64, large map[int64]int64, err error) {
	list, err := tx.QueryContext(ctx, m.d.lock, m.namespace, m.most, listed(m.passed()))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = list.Close() }()
	large = map[int64]int64{}
	for size := int64(0); list.Next(); {
		var id, n int64
		if err := list.Scan(&id, &n); err != nil {
			return nil, nil, err
		}
		if n > m.mostRow() {
			large[id] = n
			continue
		}
		if size += n; size > batchBytes && len(ids) > 0 {
			break
		}
		ids = append(ids, id)
	}
	return ids, large, list.Err()
}

// mostRow is the largest size of a row that is read.
func (m *Mover) mostRow() int64 { return int64(m.p.PayloadLimit()) + besidePayload }

// name reads the IDs and types of rows that are too large to be read whole.
func (m *Mover) name(ctx context.Context, tx *sql.Tx, large map[int64]int64) (refused []refusal, err error) {
	if len(large) == 0 {
		return nil, nil
	}
	list, err := tx.QueryContext(ctx, m.d.name, listed(slices.Sorted(maps.Keys(large))))
	if err != nil {
		return nil, err
	}
	defer func() { _ = list.Close() }()
	for list.Next() {
		r := row{task: &task.Task{}}
		if err := list.Scan(&r.id, &r.task.ID, &r.task.Type); err != nil {
			return nil, err
		}
		refused = append(refused, refusal{r, fmt.Errorf("the row has %d bytes, and may have %d: the limit of a payload and 1 MiB (store the data elsewhere and pass a reference)",
			large[r.id], m.mostRow())})
	}
	return refused, list.Err()
}

// decode reads the record of a task.
func decode(t *task.Task, id string, record []byte) error {
	t.ID = id
	if err := task.CheckID("id", id); err != nil {
		return err
	}
	return task.Decode(string(record), t)
}

// check refuses a task that cannot be enqueued. A payload that is encrypted goes to Redis as it is: it is opened only to be checked,
// if it opens here. Its consumer may have another key. A check that panics refuses the row: it must not end each process that moves.
func (m *Mover) check(t *task.Task) (err error) {
	open := *t
	defer func() {
		if v := recover(); v != nil {
			hidden := secret.OfPayload(open.Payload, m.p.Secret(open.Type, open.Secret))
			err = field.Veil(hidden, fmt.Errorf("the check of type %q panicked: %v", t.Type, v))
			m.log.Error().Err(err).Bytes("stack", debug.Stack()).Msg("the check of a payload panicked: the payload is refused")
		}
	}()
	_ = m.q.Seal().OpenTask(&open) // a payload that stays closed is not checked
	return m.p.CheckNew(&open)
}

// ms is a number of ms; one that is too large is as long as can be, and not a short time.
func ms(n int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Millisecond)
	return time.Duration(max(-most, min(n, most))) * time.Millisecond
}

func listed(ids []int64) string {
	b, _ := json.Marshal(ids) // whole numbers always can be
	return string(b)
}
