package consumer

import (
	"errors"
	"fmt"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/tracing"
)

// workTraced is work within a span, which it puts into the run's context, where the handler finds it. It begins before the handler,
// while no other goroutine reads the context's parent. It must not be inlined, for the same reason as keep.
//
//go:noinline
func (c *Consumer) workTraced(r *run, h handlers.TaskHandler, results chan<- result) {
	var span *tracing.Run
	r.parent, span = c.tracer.Run(r.parent, r.task)
	handlers.Do(r, h, r.task, func(err error) {
		out := c.outcomeTraced(span, r, r.why(), err)
		r.over()
		results <- out
	})
}

// outcomeTraced is outcome, and ends the span. The span of a slot's first attempt goes into the record of the next.
func (c *Consumer) outcomeTraced(span *tracing.Run, r *run, cause, err error) result {
	if err != nil {
		span.Failed()
	}
	out := c.outcome(r, cause, err)
	endSpan(span, r, &out, cause, err)
	return out
}

// endSpan shows nothing of the error that is secret of the payload: a span leaves the process, as a log does.
func endSpan(span *tracing.Run, r *run, out *result, cause, err error) {
	kind := kindOf(cause, err)
	if err != nil && kind == "" && len(r.task.Secret) > 0 {
		kind = fmt.Sprintf("%T", err)
	}
	err = handlers.Hide(r.task, err)
	switch s := &out.settle; {
	case out.drop:
		span.End(string(history.Lost), "lost", cause)
	case err == nil:
		span.End(string(history.Done), "", nil)
	case s.Outcome == queue.Died:
		span.End(string(history.Dead), kind, late(r.task, cause, err))
	case handedBack(s):
		span.End(string(history.Returned), "", nil)
	case s.Outcome == queue.Moved:
		span.End(string(history.Failed), kind, late(r.task, cause, err))
	default:
		span.End(string(history.Cancelled), "", nil)
	}
}

// kindOf names the kind of a failure, if it is not the type of the error.
func kindOf(cause, err error) string {
	if _, ok := errors.AsType[*handlers.PanicError](err); ok {
		return "panic"
	}
	if errors.Is(cause, ErrTimeout) {
		return "timeout"
	}
	return ""
}
