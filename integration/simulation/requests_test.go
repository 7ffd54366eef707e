package simulation

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/task"
)

// told notes that a process was told to leave.
func (w *world) told(n *node, now time.Time) {
	w.with(func() {
		w.pass = nil // those that leave may be the ones that watch the leader
		if n.stopping.IsZero() {
			n.stopping = now
		}
	})
}

// request asks a process to resign or to drain, as a person does. A process that does not hear that it should drain is
// stopped.
func (w *world) request(n *node, what string) {
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	var id string
	w.with(func() { id, w.pass = n.id, nil })
	ask := w.registry.AskToResign
	if what == "drain" {
		w.told(n, time.Now())
		ask = w.registry.AskToDrain
	}
	_, err := ask(ctx, id, "somebody")
	w.with(func() {
		w.trace("%s of %s: %v", what, n.plan.Name, err)
		known := errors.Is(err, task.ErrNotFound) || errors.Is(err, instance.ErrNoOther) || w.redis.brokeIdle(err)
		if err != nil && !known && time.Now().After(w.calm) {
			w.blame("refused", "%s of %s: %v", what, n.plan.Name, err)
		}
	})
	if what != "drain" {
		return
	}
	if err != nil {
		n.stop()
	}
	var ill time.Time
	w.with(func() { ill = later2(n.ill, w.calm) })
	time.Sleep(time.Until(ill)) // until then it may not hear
	w.awaitEnd(n)
}

// timeOf returns when Redis added an entry of a stream.
func timeOf(id string) time.Time {
	ms, _, _ := strings.Cut(id, "-")
	n, _ := strconv.ParseInt(ms, 10, 64)
	return time.UnixMilli(n)
}
