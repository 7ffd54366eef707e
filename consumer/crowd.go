package consumer

import (
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// crowd counts the workers that run tasks of each schedule. While others wait, a schedule gets at most half of the workers; the
// script that claims decides that, by what heavy tells it. Tasks without a schedule are not counted, and cost nothing here.
type crowd map[string]int

// add counts a task n times.
func (c crowd) add(t *task.Task, n int) {
	if t.Schedule == "" {
		return
	}
	if n += c[t.Schedule]; n > 0 {
		c[t.Schedule] = n
	} else {
		delete(c, t.Schedule)
	}
}

// heavy returns the schedules that have more than an eighth of the workers, which are seven at most.
func (c crowd) heavy(workers int) (list []queue.Taken) {
	for name, n := range c {
		if 8*n > workers {
			list = append(list, queue.Taken{Schedule: name, Workers: n})
		}
	}
	return list
}
