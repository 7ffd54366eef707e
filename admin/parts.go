package admin

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// Join returns the admin of a namespace that is split: those of its partitions, in order, as one. A call about one schedule or task goes
// only to the partition where that lies. Any other question goes to all, and their answers are merged: an answer names the partitions
// that did not answer, and there is an error only if none did. A change of the whole, such as a pause, is made in each partition. It
// returns an error if one of them failed, and stays made in the others: make it again.
func Join(where Map, list []*Admin) *Admin {
	if len(list) == 1 {
		return list[0]
	}
	p := &parts{Map: where}
	for i, a := range list {
		p.list = append(p.list, part{i + 1, a.Tasks.(*tasks), a.Schedules.(*schedules), a.Instances.(*instances), a.Activity.(*activity), a.Bulks.(*bulks), a.Answers, a.Sessions})
	}
	return &Admin{
		Tasks: tasksOfParts{p}, Schedules: schedulesOfParts{p}, Instances: instancesOfParts{p}, Activity: activityOfParts{p}, Bulks: bulksOfParts{p},
		Answers: answersOfParts{p}, Sessions: sessionsOfParts{p},
	}
}

// Map says where the things of a namespace lie that is split, and adds tasks there. A [onbeat.Dispatcher] has one.
type Map interface {
	// Of returns the partition of a name, such as that of a schedule, from 1.
	Of(name string) int
	// ID returns the partition of the task with an ID; false for a task that the dispatcher made for itself, which may lie in any.
	ID(id string) (partition int, ok bool)
	// Turn returns an ID for a task that has none: id, or one that differs from it in its last two letters, and lies where the task does.
	Turn(ctx context.Context, t *task.Task, id string) (string, error)
	Enqueue(ctx context.Context, t *task.Task, opts ...task.Option) (string, error)
	EnqueueAll(ctx context.Context, list []*task.Task) ([]producer.Result, error)
}

// part is what people do with one partition.
type part struct {
	number    int
	tasks     *tasks
	schedules *schedules
	instances *instances
	activity  *activity
	bulks     *bulks
	answers   Answers
	sessions  Sessions
}

// parts are the partitions of a namespace.
type parts struct {
	Map
	list   []part
	silent silent
}

// silent are the partitions that have not answered lately: the next question does not wait for them again.
type silent struct {
	mu    sync.Mutex
	until map[int]time.Time
	err   map[int]error
}

// silence is how long a partition that hung is not asked: longer than one question waits, because a page asks several. Slow is when it
// counts as one that hung.
const silence, slow = 2 * partTime, time.Second

// lately returns the error of a partition that hung a moment ago.
func (s *silent) lately(number int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.until[number]) {
		return s.err[number]
	}
	return nil
}

// note keeps how a question went that took so long.
func (s *silent) note(ctx context.Context, number int, err error, took time.Duration) {
	if took < slow || !store.Retryable(err) || errors.Is(context.Cause(ctx), context.Canceled) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until, s.err = map[int]time.Time{}, map[int]error{}
	}
	s.until[number], s.err[number] = time.Now().Add(silence), err
}

// at returns the partition of a name.
func (p *parts) at(name string) *part { return &p.list[p.Of(name)-1] }

// of names the partition in the error of a question for it alone, if it does not answer.
func of[T any](x *part) func(T, error) (T, error) {
	return func(answer T, err error) (T, error) {
		if store.Retryable(err) {
			err = split.In(x.number, err)
		}
		return answer, err
	}
}

// partTime is how long a partition may take to answer a question that has a short answer.
const partTime = 5 * time.Second

// unaskedPart says that a partition did not answer.
func unaskedPart(number int, err error) Unasked {
	return Unasked{"partition " + strconv.Itoa(number), Brief(err)}
}

// gatherSoon is gather for a question that has a short answer: one that hangs is not waited for.
func gatherSoon[T any](ctx context.Context, p *parts, ask func(ctx context.Context, x *part) (T, error)) (answers []T, missing []Unasked, err error) {
	ctx, done := context.WithTimeout(ctx, partTime)
	defer done()
	return gather(ctx, p, ask)
}

// gather asks all partitions, side by side. It returns their answers in order, without those that did not answer, and who did not. The
// error is that of the first, if none answered.
func gather[T any](ctx context.Context, p *parts, ask func(ctx context.Context, x *part) (T, error)) (answers []T, missing []Unasked, err error) {
	all, errs := make([]T, len(p.list)), make([]error, len(p.list))
	var asked sync.WaitGroup
	for i := range p.list {
		if errs[i] = p.silent.lately(i + 1); errs[i] != nil {
			continue
		}
		asked.Go(func() {
			began := time.Now()
			all[i], errs[i] = ask(ctx, &p.list[i])
			p.silent.note(ctx, i+1, errs[i], time.Since(began))
		})
	}
	asked.Wait()
	for i, e := range errs {
		if e == nil {
			answers = append(answers, all[i])
			continue
		}
		if errors.Is(e, task.ErrInvalid) { // the question is at fault, and not the partition
			return nil, nil, e
		}
		missing = append(missing, unaskedPart(i+1, e))
		err = cmp.Or(err, e)
	}
	if len(answers) > 0 {
		err = nil
	}
	return answers, missing, err
}

// toAll does something in all partitions, side by side, and returns the errors of those where it failed.
func toAll(ctx context.Context, p *parts, do func(ctx context.Context, x *part) error) error {
	errs := make([]error, len(p.list))
	var all sync.WaitGroup
	for i := range p.list {
		all.Go(func() {
			if err := do(ctx, &p.list[i]); err != nil {
				errs[i] = split.In(i+1, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
