package model

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// world is a server and the state that it is in. A search has a world for each of its workers.
type world struct {
	ctx     context.Context
	m       *testredis.Miniredis
	rdb     *redis.Client
	q       *queue.Queue
	reg     *instance.Registry
	scripts map[string]*store.Script
	between *scripts
	room    *room
	deaf    string // while it is not "", nobody else listens
	*state
}

func newWorld(t testing.TB, r *room, broken map[string]string) *world {
	t.Helper()
	between := &scripts{broken: broken}
	m, rdb := connect(t, between)
	var caps queue.Caps
	if r.archive {
		caps.Archive = 1000
	}
	q, err := queue.New(rdb, partition, caps)
	if err != nil {
		t.Fatal(err)
	}
	reg, err := instance.NewRegistry(rdb, partition.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{ctx: t.Context(), m: m, rdb: rdb, q: q, reg: reg, scripts: map[string]*store.Script{}, between: between, room: r}
	m.Server().SetPreHook(w.hears)
	for _, script := range store.Scripts() {
		w.scripts[script.Name] = script
	}
	return w
}

// enter puts the server into a state. The steps that follow change that state.
func (w *world) enter(s *state) {
	w.state = s
	w.m.FlushAll()
	w.setClock()
	s.disk.write(w.m.Miniredis)
}

// setClock moves the server's clock, by which keys expire with the next command.
func (w *world) setClock() {
	w.m.SetTime(time.UnixMilli(w.now))
	if err := w.rdb.Time(w.ctx).Err(); err != nil {
		panic(fault{err.Error()})
	}
}

// begin returns the first state of a room: there is no instance.
func (r *room) begin() *state {
	s := &state{now: begin, disk: disk{}, book: newBook(rule{r.lead, r.consume}), watched: r.watched, looks: r.looks}
	for _, p := range r.procs {
		s.procs = append(s.procs, p.clone())
	}
	return s
}

// do makes a call, judges it and returns the reply. The caller has not seen the reply yet.
func (w *world) do(c call) answer {
	before := w.disk
	a := w.make(c)
	var notes []string
	w.disk, notes = w.look()
	w.book.judge(w, c, a, before, notes)
	return a
}

// look reads everything in Redis, and the new entries of the history and of the runs for an archive. The latter begin with a tab.
func (w *world) look() (disk, []string) {
	d, streams := read(w.m.Miniredis)
	var notes []string
	for _, e := range streams[keys.History] {
		for i := 0; i+1 < len(e.Values); i += 2 {
			if name := e.Values[i]; name == "runs" || name == "slots" {
				notes = append(notes, strings.Split(e.Values[i+1], "\n")...)
			}
		}
	}
	for _, e := range streams[keys.Runs] {
		for i := 0; i+1 < len(e.Values); i += 2 {
			if e.Values[i] == "tasks" {
				for line := range strings.SplitSeq(e.Values[i+1], "\n") {
					notes = append(notes, "\t"+line)
				}
			}
		}
	}
	w.m.Del(keys.History)
	w.m.Del(keys.Runs)
	w.m.Del(keys.Events)
	return d, notes
}

// tick moves the clock to the given time.
func (w *world) tick(to int64) {
	w.now = to
	w.setClock()
	w.disk, _ = w.look()
}

// next is the next moment at which anything changes by itself: a lease ends, a task is due, a slot comes.
func (s *state) next() int64 {
	next := begin + ((s.now-begin)/interval+1)*interval
	at := func(ms int64) {
		if ms > s.now {
			next = min(next, ms)
		}
	}
	for _, m := range s.book.members {
		at(m.lease)
	}
	for _, e := range s.book.tasks {
		at(e.due)
		at(e.end)
	}
	return next
}

// task is one as it was enqueued, or pushed.
func (r *room) task(id string) *task.Task {
	if _, slot, ok := task.ParseSlotID(id); ok {
		return slotTask(slot.UnixMilli())
	}
	t := *r.tasks[id]
	t.ID = id
	return &t
}
