package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/internal/input"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// fileBatch is how many lines are checked and then added in one batch.
const fileBatch = 1000

// fileSummary counts the results of the lines.
type fileSummary struct {
	Enqueued     int `json:"enqueued"`
	AlreadyThere int `json:"already_there"`
	Bad          int `json:"bad"`
}

// taskFile is a file of tasks to enqueue.
type taskFile struct {
	app     *app
	name    string // as errors show it
	check   *checker
	places  split.Map // of the tasks
	skipBad bool
	summary fileSummary
	kinds   map[kind]bool // of the tasks that were added
	among   bool          // some tasks failed, and those that were added stand anywhere among them
}

// file adds the tasks of a file. It checks all of them before it adds the first. A stream is checked batch by batch.
func (c *enqueueCmd) file(ctx context.Context, a *app) error {
	target, err := a.target()
	if err != nil {
		return err
	}
	f := &taskFile{kinds: map[kind]bool{}, app: a, name: c.File, check: newChecker(target.limits()), skipBad: c.SkipBad}
	source, again, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer source.Close()
	client, err := a.connectTo(ctx, target)
	if err != nil {
		return err
	}
	defer client.Close()
	if f.places, err = client.places(ctx, target.cfg.Limits); err != nil {
		return err
	}
	if again && !c.SkipBad {
		if err := f.read(ctx, source, func([]*task.Task, []int) error { return nil }); err != nil {
			return err
		}
		if _, err := source.(io.Seeker).Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	p := a.progress()
	err = f.read(ctx, source, func(batch []*task.Task, lines []int) error {
		defer p.say("enqueued %d", f.summary.Enqueued)
		return f.add(ctx, client, batch, lines)
	})
	p.clear()
	if err != nil && !errors.Is(err, errSaid) {
		return f.partly(err)
	}
	a.sayUnhandled(ctx, client, slices.SortedFunc(maps.Keys(f.kinds), func(a, b kind) int { return cmp.Or(cmp.Compare(a.typ, b.typ), cmp.Compare(a.queue, b.queue)) }))
	return f.report()
}

// places returns where the tasks of a namespace lie. The limits are those of types in the config. Behind an API the places are not known:
// the API itself refuses tasks that lie apart.
func (c *client) places(ctx context.Context, limits map[string]int) (split.Map, error) {
	if c.partitions < 2 {
		return split.Map{}, nil
	}
	ctx, done := context.WithTimeout(ctx, connectTime)
	defer done()
	noted, err := queue.Limited(ctx, c.rdb, c.namespace)
	if err != nil && !store.Retryable(err) { // if Redis does not answer, adding the tasks says so
		return split.Map{}, err
	}
	return split.Map{Partitions: c.partitions, Limited: func(typ string) bool {
		_, own := limits[typ] // which is noted with the first task
		return own || slices.Contains(noted, typ)
	}}, nil
}

// open opens the file. again reports whether the file can be read twice.
func (f *taskFile) open(ctx context.Context) (source io.ReadCloser, again bool, err error) {
	if f.name == "-" {
		f.name = "stdin"
		return io.NopCloser(f.app.stdin(ctx)), false, nil
	}
	file, info, err := input.Open(ctx, f.name, "file")
	if err != nil {
		return nil, false, err
	}
	return file, info.Mode().IsRegular(), nil
}

// read calls add with each batch of good tasks, and their lines.
func (f *taskFile) read(ctx context.Context, source io.Reader, add func([]*task.Task, []int) error) error {
	payload := f.check.limits.Payload
	if payload == 0 {
		payload = task.DefaultPayloadLimit
	}
	lines := newLineReader(source, 6*payload+64<<10) // JSON may take six bytes for one
	batch, numbers := make([]*task.Task, 0, fileBatch), make([]int, 0, fileBatch)
	for {
		t, err := f.next(lines)
		switch {
		case errors.Is(err, io.EOF):
			if len(batch) == 0 {
				return nil
			}
			return add(batch, numbers)
		case err != nil && f.skipBad && askedWrongly(err):
			f.summary.Bad++
			fmt.Fprintln(f.app.err, "onbeat:", said(err))
			continue
		case err != nil:
			return err
		}
		batch, numbers = append(batch, t), append(numbers, lines.n)
		if len(batch) == fileBatch {
			if err := add(batch, numbers); err != nil {
				return err
			}
			batch, numbers = batch[:0], numbers[:0]
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (f *taskFile) next(lines *lineReader) (*task.Task, error) {
	line, err := lines.next()
	if errors.Is(err, io.EOF) {
		return nil, err
	}
	var spec *admin.TaskSpec
	var t *task.Task
	if err == nil {
		spec, err = parseSpec(line)
	}
	if err == nil {
		t, err = f.check.task(spec)
	}
	if err == nil {
		err = producer.CheckNames(t)
	}
	if err == nil {
		_, err = f.places.Task(t)
	}
	if err != nil {
		return nil, &config.Problem{File: f.name, Line: lines.n, Err: err}
	}
	return t, nil
}

// add adds a batch, and tells of each line whose task Redis refuses. Unless bad lines are skipped, it then returns an error: [errSaid], or
// the line of a task that the whole batch is refused for.
func (f *taskFile) add(ctx context.Context, c *client, batch []*task.Task, lines []int) error {
	f.app.carryTrace(batch)
	bad := f.summary.Bad
	for {
		results, err := c.Tasks.Enqueue(ctx, batch)
		for i, r := range results {
			f.count(r, batch[i], lines[i])
		}
		at, why := refusedOf(err, len(results), len(batch))
		switch {
		case why != nil && !f.skipBad:
			return &config.Problem{File: f.name, Line: lines[at], Err: why}
		case why != nil: // an API, say, knew more than this process, and has added none of the others
			f.bad(lines[at], why)
			done := len(results)
			batch, lines = slices.Concat(batch[done:at], batch[at+1:]), slices.Concat(lines[done:at], lines[at+1:])
			if len(batch) == 0 {
				return nil
			}
			continue
		case err == nil && f.summary.Bad > bad && !f.skipBad:
			return errSaid
		}
		f.among = err != nil && len(results) == len(batch)
		return err
	}
}

// refusedOf returns which task of a batch an error refuses, and why; nil if it refuses none. The place is at least done and
// below of, whatever an API says.
func refusedOf(err error, done, of int) (at int, why error) {
	var one *producer.BatchError
	if !errors.As(err, &one) || one.Index < done || one.Index >= of {
		return 0, nil
	}
	return one.Index, one.Err
}

// count notes what became of the task of a line.
func (f *taskFile) count(r admin.Enqueued, t *task.Task, line int) {
	switch {
	case r.Err == nil:
		f.summary.Enqueued++
		f.kinds[kind{t.Type, t.Queue}] = true
	case r.There() != nil:
		f.summary.AlreadyThere++
	default:
		f.bad(line, r.Err)
	}
}

// bad tells of a bad line.
func (f *taskFile) bad(line int, err error) {
	f.summary.Bad++
	fmt.Fprintln(f.app.err, "onbeat:", said(&config.Problem{File: f.name, Line: line, Err: err}))
}

// partly adds to an error how many tasks were added all the same. If some partitions failed, tasks of the others are further down, too.
func (f *taskFile) partly(err error) error {
	n := f.summary.Enqueued
	if n == 0 {
		return err
	}
	err = inWords(err)
	if f.among {
		return fmt.Errorf("%w; %s enqueued", err, wording.Count(int64(n), "other task was", "other tasks were"))
	}
	return fmt.Errorf("%w; %s enqueued", err, wording.Count(int64(n), "task before that was", "tasks before that were"))
}

// report prints the results of the lines. It fails if a line was bad: the user saw an error for that line, and its task is not enqueued.
func (f *taskFile) report() error {
	s := f.summary
	if f.app.JSON {
		if err := f.app.printJSON(s); err != nil {
			return err
		}
	} else {
		f.app.printf("enqueued %d, %d already there, %d bad", s.Enqueued, s.AlreadyThere, s.Bad)
	}
	if s.Bad > 0 {
		return errSaid
	}
	return nil
}
