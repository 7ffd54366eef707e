package consumer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/trace"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

// Config tunes a Consumer. The zero value is ready to use.
type Config struct {
	// Concurrency is how many tasks run at once, besides the dispatcher's own ([task.Own]), which have two workers more. Default 10.
	Concurrency int
	// Pool is shared with the consumers of other partitions, which run Concurrency tasks together. Default nil: nobody shares.
	Pool *Pool
	// Queues maps each queue that the consumer reads to its weight. When two queues both have due work, the consumer asks
	// the one with twice the weight first twice as often. Weights are 1 to 1,000,000. Default: every queue, equal weights.
	Queues map[string]int
	// Strict takes from a queue only when no queue of a larger weight has due work.
	Strict bool
	// Limits maps a task type to how many tasks of it run at once, over all instances. Default: no limit.
	Limits map[string]int
	// Drain is how long runs may go on after the instance has resigned. Then they are cancelled and handed back.
	// Default 30s; a negative Drain cancels them at once.
	Drain time.Duration
	// Hurry ends Drain early: once the caller closes it, running tasks are cancelled and handed back.
	// Default: nothing cuts Drain short.
	Hurry <-chan struct{}
	// Secret are, by type, the secret paths of payloads, besides those that a task has.
	Secret map[string][]string
	// Observer is told of claims and runs. Default: nobody is.
	Observer Observer
	// Log receives failures and state changes. The zero Logger discards them.
	Log zerolog.Logger
	// TracerProvider makes a span of each run. Default nil: none.
	TracerProvider trace.TracerProvider
	// Labels are the pprof labels that the goroutine of each run begins with. Default: none.
	Labels pprof.LabelSet
}

// abandon is how long a handler may take to return after its run was cancelled. Then the consumer hands the task back
// without waiting for the handler.
const abandon = 2 * time.Second

// Validate reports invalid fields, with one joined [*task.FieldError] for each. Unset fields are valid.
func (c Config) Validate() error {
	var list []error
	if c.Concurrency < 0 || c.Concurrency > 100_000 {
		list = append(list, &task.FieldError{Field: "concurrency", Value: fmt.Sprint(c.Concurrency), Reason: "out of range", Hint: "1 to 100000; the default is 10"})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Queues)) {
		err := task.CheckName("queues", name)
		if w := c.Queues[name]; err == nil && (w < 1 || w > 1_000_000) {
			err = &task.FieldError{Field: "queues." + name, Value: fmt.Sprint(w), Reason: "out of range", Hint: "a weight of 1 or more"}
		}
		list = append(list, err)
	}
	for _, typ := range slices.Sorted(maps.Keys(c.Limits)) {
		err := task.CheckName("limits", typ)
		if n := c.Limits[typ]; err == nil && n < 1 {
			err = &task.FieldError{Field: "limits." + typ, Value: fmt.Sprint(n), Reason: "out of range", Hint: "1 or more"}
		}
		list = append(list, err)
	}
	return errors.Join(list...)
}

// DefaultConcurrency is how many tasks a consumer runs at once if its configuration does not say.
const DefaultConcurrency = 10

func (c Config) withDefaults() Config {
	c.Concurrency = cmp.Or(c.Concurrency, DefaultConcurrency)
	if c.Drain == 0 {
		c.Drain = 30 * time.Second
	}
	c.Drain = max(c.Drain, 0)
	return c
}

// Handlers is the part of a [handlers.Mux] that the consumer needs.
type Handlers interface {
	// Handler returns the handler of a task type, and false if there is none.
	Handler(typ string) (handlers.TaskHandler, bool)
	// Types lists the task types that have a handler.
	Types() []string
}
