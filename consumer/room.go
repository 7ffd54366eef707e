package consumer

import (
	"strings"
	"time"

	"github.com/onbeat/onbeat/task"
)

// Workers of the dispatcher's own tasks, besides [Config.Concurrency]. No other task takes them, so a message that all workers hang
// is sent while they do. A bulk action may last for hours: one worker at least is left for what is short.
const (
	ownWorkers  = 2
	bulkWorkers = 1
)

// spareEvery is how often a consumer all of whose workers are busy looks for the dispatcher's own tasks, if it makes no other call. It
// does not watch for them: then each task that anybody adds would wake it.
const spareEvery = 2 * time.Second

// room is for how many tasks there is a worker, or how many tasks have one.
type room struct {
	tasks int // of users
	own   int // of the dispatcher
	bulk  int // of those: bulk actions
}

// add counts n tasks of a type.
func (r *room) add(typ string, n int) {
	switch {
	case !strings.HasPrefix(typ, task.Own):
		r.tasks += n
		return
	case typ == task.BulkType:
		r.bulk += n
	}
	r.own += n
}

// free returns for how many tasks a worker is free.
func (c *Consumer) free() room {
	own := ownWorkers - c.busy.own
	return room{tasks: c.cfg.Concurrency - c.busy.tasks, own: own, bulk: min(bulkWorkers-c.busy.bulk, own)}
}

// has reports whether there is a worker for a task of a type.
func (r room) has(typ string) bool {
	r.add(typ, -1)
	return r.tasks >= 0 && r.own >= 0 && r.bulk >= 0
}

// less returns what is left when the tasks of a reply have begun.
func (r room) less(claimed []*task.Task) room {
	for _, t := range claimed {
		r.add(t.Type, -1)
	}
	return r
}
