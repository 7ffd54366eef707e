package consumer

import (
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// Workers of the dispatcher's own tasks, besides [Config.Concurrency]. No other task takes them, so a message that all workers hang
// is sent while they do. A bulk action may last for hours: one worker at least is left for short tasks.
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

// free returns for how many tasks a worker is free. A worker of a pool counts only if the consumer holds it.
func (c *Consumer) free() room {
	own := ownWorkers - c.busy.own
	free := room{tasks: c.cfg.Concurrency - c.busy.tasks, own: own, bulk: min(bulkWorkers-c.busy.bulk, own)}
	if c.seat != nil {
		free.tasks = c.held
	}
	return free
}

// reserve makes the consumer hold workers of its pool for the next call, if it has one, and returns what is free. With look the consumer
// waits for a worker if there is none; else it takes what there is, if it makes a call anyway.
func (c *Consumer) reserve(look, anyway bool) room {
	if c.seat != nil && (look || anyway) && !c.doubt { // in doubt, a call claims nothing
		c.held += c.seat.take(c.portion-c.held, look)
	}
	return c.free()
}

// tally tells the pool what the consumer uses.
func (c *Consumer) tally() {
	if c.seat != nil {
		c.seat.note(c.busy.tasks, c.held)
	}
}

// regain makes up for workers that others have because a call lasted.
func (c *Consumer) regain(r *queue.CycleReply) {
	if c.seat == nil {
		return
	}
	need := 0
	if r != nil {
		need = ofUsers(r)
	}
	if got, lent := c.seat.answered(need, r != nil); lent {
		c.held = got
	}
}

// release gives back what the consumer holds.
func (c *Consumer) release() {
	if c.held > 0 {
		c.held = 0
		c.tally()
	}
}

// standAside takes the consumer out of the line if it has nothing to look for: the next one has its turn.
func (c *Consumer) standAside() {
	if c.seat != nil {
		c.seat.quit()
	}
}

// mayCall tells the pool that the consumer takes its turn again.
func (c *Consumer) mayCall() {
	if c.seat != nil {
		c.seat.back()
	}
}

// meanwhile asks Redis for something, and collects the runs that end until the answer comes: their workers are free for others.
func (c *Consumer) meanwhile(ask func() error) error {
	answer := make(chan error, 1)
	go func() { answer <- ask() }()
	for {
		select {
		case err := <-answer:
			return err
		case r := <-c.results:
			c.ended(r)
			c.tally()
		}
	}
}

// mayBegin reports whether there is a worker for a task that no call asked for.
func (c *Consumer) mayBegin(typ string) bool {
	if c.seat != nil && c.held == 0 && !strings.HasPrefix(typ, task.Own) {
		c.held += c.seat.take(1, false)
	}
	return c.free().has(typ)
}

// starved reports whether due work waits until a worker is free.
func (c *Consumer) starved() bool {
	if c.seat != nil {
		return c.seat.waits()
	}
	return c.free().tasks <= 0
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
