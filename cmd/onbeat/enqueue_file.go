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
	skipBad bool
	summary fileSummary
	kinds   map[kind]bool // of the tasks that were added
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
	if again && !c.SkipBad {
		if err := f.read(ctx, source, func([]*task.Task, []int) error { return nil }); err != nil {
			return err
		}
		if _, err := source.(io.Seeker).Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	client, err := a.connectTo(ctx, target)
	if err != nil {
		return err
	}
	defer client.Close()
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
	if err != nil {
		return nil, &config.Problem{File: f.name, Line: lines.n, Err: err}
	}
	return t, nil
}

// add adds a batch, and tells of each line whose task Redis refuses: of such lines it returns [errSaid], unless bad lines are skipped.
func (f *taskFile) add(ctx context.Context, c *client, batch []*task.Task, lines []int) error {
	f.app.carryTrace(batch)
	results, err := c.Tasks.Enqueue(ctx, batch)
	bad := f.summary.Bad
	for i, r := range results {
		switch {
		case r.Err == nil:
			f.summary.Enqueued++
			f.kinds[kind{batch[i].Type, batch[i].Queue}] = true
		case r.There() != nil:
			f.summary.AlreadyThere++
		default:
			f.summary.Bad++
			fmt.Fprintln(f.app.err, "onbeat:", said(&config.Problem{File: f.name, Line: lines[i], Err: r.Err}))
		}
	}
	if err == nil && f.summary.Bad > bad && !f.skipBad {
		return errSaid
	}
	return err
}

// partly adds to an error how many tasks were added before it.
func (f *taskFile) partly(err error) error {
	if n := f.summary.Enqueued; n > 0 {
		return fmt.Errorf("%w; %d tasks before that were enqueued", err, n)
	}
	return err
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
