package queue

import (
	"slices"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/task"
)

// laneSet numbers the lanes that one call uses, from 1, in the order in which they first appear.
type laneSet struct {
	list    []Lane
	numbers map[Lane]int
}

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

// declare appends the due sets to keys and the names to args, behind their count.
func (s *laneSet) declare(k *Keys, keys []string, args []any) ([]string, []any) {
	args = append(args, len(s.list))
	for _, l := range s.list {
		keys = append(keys, k.Due(l))
		args = append(args, l.String())
	}
	return keys, args
}

// batch is what one call of enqueue.lua adds. Values that do not fit into an interface are passed by pointer, so that
// an argument costs no allocation.
type batch struct {
	tasks   []*task.Task
	lanes   laneSet
	numbers []int // the lane of each task
	order   []int // where each was in the list that was given; nil: there
	uniques []string
	holders []any // for each task, the number of its unique key or 0; nil if there are none
	windows []any // of each unique key, in ms
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
		b.groupLanes() // nothing is refused for what stands before it, so the order is free
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

// index is where a task was in the list that was given.
func (b *batch) index(i int) int {
	if b.order == nil {
		return i
	}
	return b.order[i]
}

// request is the call of the script.
func (b *batch) request(k *Keys, look bool) (keys []string, args []any) {
	keys = make([]string, 0, 4+len(b.lanes.list)+len(b.uniques))
	keys = append(keys, k.Tasks, k.Lanes, k.Meta, k.Watch)
	args = make([]any, 0, 16+len(b.lanes.list)+5*len(b.tasks)+len(b.windows))
	earliest, delay := b.first()
	args = append(args, k.Wake, look, earliest, delay)
	keys, args = b.lanes.declare(k, keys, args)
	args = b.appendRuns(args)
	args = append(args, len(b.tasks))
	args = b.appendDues(args)
	args = b.appendRecords(args)
	args = append(args, len(b.uniques))
	return append(keys, b.uniques...), append(append(args, b.holders...), b.windows...)
}

// first is the earliest due time and the least delay; "" where there is none.
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

// appendRuns writes the number and length of each run of tasks of one lane.
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

func (b *batch) appendRecords(args []any) []any {
	const head = 64 // about what a record holds besides its payload
	size := head * len(b.tasks)
	for _, t := range b.tasks {
		size += len(t.Payload)
	}
	buf, ends := make([]byte, 0, size), make([]int, len(b.tasks))
	for i, t := range b.tasks {
		buf = encodeNew(buf, t)
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

// encodeNew is the record of a task that has not run: its due time is its score, so the record leaves it out.
func encodeNew(b []byte, t *task.Task) []byte {
	due := t.Due
	t.Due = time.Time{}
	b = task.Encode(b, t)
	t.Due = due
	return b
}

// dueArg is a moment as scripts read it: unix ms, or "+ms" from the clock of Redis.
func dueArg(at time.Time, delay time.Duration) any {
	if !at.IsZero() {
		return dueMs(at)
	}
	return "+" + strconv.FormatInt(ceilMs(delay), 10)
}

// dueMs is the first whole millisecond that is not before a moment.
func dueMs(at time.Time) int64 {
	ms := at.UnixMilli()
	if at.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}

// ceilMs is a delay in whole milliseconds, and never shorter; none if it is negative.
func ceilMs(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > 0 && d%time.Millisecond != 0 {
		ms++
	}
	return max(ms, 0)
}
