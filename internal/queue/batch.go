package queue

import (
	"slices"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/task"
)

// laneSet numbers the lanes of one call, from 1, in the order of their first use.
type laneSet struct {
	list    []Lane
	numbers map[Lane]int
}

// number returns the number of a lane, and gives it one the first time.
func (s *laneSet) number(l Lane) int {
	n, ok := s.numbers[l]
	if !ok {
		if s.numbers == nil {
			s.numbers = make(map[Lane]int, 4)
		}
		s.list = append(s.list, l)
		n = len(s.list)
		s.numbers[l] = n
	}
	return n
}

// declare appends the lanes' due sets to keys, and to args their count and then their names.
func (s *laneSet) declare(k *Keys, keys []string, args []any) ([]string, []any) {
	args = append(args, len(s.list))
	for _, l := range s.list {
		keys = append(keys, k.Due(l))
		args = append(args, l.String())
	}
	return keys, args
}

// batch is the tasks that one call of enqueue.lua adds. Arguments that do not fit into an interface value are passed by
// pointer, so that they cost no allocation.
type batch struct {
	tasks   []*task.Task
	lanes   laneSet
	numbers []int // the lane of each task
	order   []int // the index of each task in the caller's list; nil: the same order
	uniques []string
	holders []any // for each task, the number of its unique key, or 0; nil if no task has one
	windows []any // the window of each unique key, in ms
	seal    *seal.Keys
	by      string // who adds them, or ""
}

func newBatch(k *Keys, tasks []*task.Task, look bool) *batch {
	b := &batch{tasks: tasks, numbers: make([]int, len(tasks))}
	for i, t := range tasks {
		l := LaneOf(t)
		if i > 0 && l == b.lanes.list[b.numbers[i-1]-1] {
			b.numbers[i] = b.numbers[i-1]
		} else {
			b.numbers[i] = b.lanes.number(l)
		}
		if t.UniqueKey != "" {
			b.hold(k, i)
		}
	}
	if !look && b.holders == nil && len(b.lanes.list) > 1 {
		b.groupLanes() // no task can be refused because of one before it, so the order is free
	}
	return b
}

// hold notes the unique key of the task at an index.
func (b *batch) hold(k *Keys, i int) {
	t := b.tasks[i]
	if b.holders == nil {
		b.holders = slices.Repeat([]any{0}, len(b.tasks))
	}
	window := t.UniqueFor
	if window <= 0 {
		window = task.DefaultUniqueFor
	}
	b.uniques = append(b.uniques, k.Unique(t.UniqueKey))
	b.windows = append(b.windows, max(window.Milliseconds(), 1))
	b.holders[i] = len(b.uniques)
}

// groupLanes puts the tasks of one lane next to each other.
func (b *batch) groupLanes() {
	order := make([]int, len(b.tasks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return b.numbers[x] - b.numbers[y] })
	tasks := make([]*task.Task, len(order))
	numbers := make([]int, len(order))
	for i, from := range order {
		tasks[i], numbers[i] = b.tasks[from], b.numbers[from]
	}
	b.tasks, b.numbers, b.order = tasks, numbers, order
}

// index returns the index that task i had in the caller's list.
func (b *batch) index(i int) int {
	if b.order == nil {
		return i
	}
	return b.order[i]
}

// request returns the keys and arguments of the script.
func (b *batch) request(k *Keys, look string) (keys []string, args []any) {
	keys = make([]string, 0, 6+len(b.lanes.list)+len(b.uniques))
	keys = append(keys, k.Tasks, k.Lanes, k.Meta, k.Watch)
	args = make([]any, 0, 16+len(b.lanes.list)+5*len(b.tasks)+len(b.windows))
	earliest, delay := b.first()
	args = append(args, k.Wake, look, earliest, delay, b.by)
	keys, args = b.lanes.declare(k, keys, args)
	args = b.appendRuns(args)
	args = append(args, len(b.tasks))
	args = b.appendDues(args)
	args = b.appendRecords(args)
	args = append(args, len(b.uniques))
	keys = append(keys, b.uniques...)
	if look == lookAgain {
		keys = append(keys, k.Dead, k.Done)
	}
	return keys, append(append(args, b.holders...), b.windows...)
}

// first returns the earliest due time and the shortest delay of the batch, or "" if no task has one.
func (b *batch) first() (due, delay any) {
	var at time.Time
	var after time.Duration
	due, delay = "", ""
	for _, t := range b.tasks {
		switch {
		case t.Due.IsZero():
			if delay == "" || t.Delay < after {
				after, delay = t.Delay, ceilMs(t.Delay)
			}
		case due == "" || t.Due.Before(at):
			at, due = t.Due, dueMs(t.Due)
		}
	}
	return due, delay
}

// appendRuns appends, for each series of tasks of one lane, the lane's number and the length of the series.
func (b *batch) appendRuns(args []any) []any {
	at, count := len(args), 0
	args = append(args, 0)
	for from := 0; from < len(b.numbers); count++ {
		to := from + 1
		for to < len(b.numbers) && b.numbers[to] == b.numbers[from] {
			to++
		}
		args = append(args, b.numbers[from], to-from)
		from = to
	}
	args[at] = count
	return args
}

// appendDues appends the due time and the ID of each task, as ZADD takes them.
func (b *batch) appendDues(args []any) []any {
	dues := make([]int64, len(b.tasks))
	var last time.Duration
	var delay any = "+0"
	for i, t := range b.tasks {
		if t.Due.IsZero() {
			if t.Delay != last {
				last, delay = t.Delay, dueArg(t.Due, t.Delay)
			}
			args = append(args, delay, &t.ID)
			continue
		}
		dues[i] = dueMs(t.Due)
		args = append(args, &dues[i], &t.ID)
	}
	return args
}

// appendRecords appends the ID and the record of each task, as HSET takes them. All records share one string.
func (b *batch) appendRecords(args []any) []any {
	const head = 64 // about how many bytes a record has besides its payload
	size := head * len(b.tasks)
	for _, t := range b.tasks {
		size += len(t.Payload)
	}
	buf, ends := make([]byte, 0, size), make([]int, len(b.tasks))
	for i, t := range b.tasks {
		buf = b.encodeNew(buf, t)
		ends[i] = len(buf)
	}
	all, records, from := string(buf), make([]string, len(b.tasks)), 0
	for i, t := range b.tasks {
		records[i] = all[from:ends[i]]
		args = append(args, &t.ID, &records[i])
		from = ends[i]
	}
	return args
}

// encodeNew appends the record of a task that has not run. It leaves out the due time, which is the task's score.
func (b *batch) encodeNew(buf []byte, t *task.Task) []byte {
	due := t.Due
	t.Due = time.Time{}
	buf = encodeSealed(buf, t, b.seal)
	t.Due = due
	return buf
}

// encodeSealed appends the record of a new task, with its payload encrypted if a key seals. The task itself stays as it is.
func encodeSealed(buf []byte, t *task.Task, keys *seal.Keys) []byte {
	was := t.Sealed
	keys.SealTask(t)
	buf = task.Encode(buf, t)
	t.Sealed = was
	return buf
}

// dueArg returns a moment as scripts read it: in unix ms, or "+ms" after the clock of Redis if at is zero.
func dueArg(at time.Time, delay time.Duration) any {
	if !at.IsZero() {
		return dueMs(at)
	}
	return "+" + strconv.FormatInt(ceilMs(delay), 10)
}

// dueMs returns a moment in unix ms, rounded up: nothing may run early.
func dueMs(at time.Time) int64 {
	ms := at.UnixMilli()
	if at.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}

// ceilMs returns a delay in ms, rounded up, and 0 for a negative one.
func ceilMs(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > 0 && d%time.Millisecond != 0 {
		ms++
	}
	return max(ms, 0)
}
