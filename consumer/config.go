package consumer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

// Config tunes a Consumer. The zero value is ready to use.
type Config struct {
	// Concurrency is how many tasks run at once. Default 10.
	Concurrency int
	// Queues are the queues it takes from, each with its weight: of two that both have due work, one with twice the
	// weight is asked first twice as often. Default: every queue, with equal weights.
	Queues map[string]int
	// Strict takes from a queue only when those of a larger weight have nothing due.
	Strict bool
	// Limits is how many tasks of a type run at once, over all instances. Default: no limit.
	Limits map[string]int
	// Drain is how long runs may go on after the instance has resigned, before they are cancelled and handed back.
	// Default 30s; negative: not at all.
	Drain time.Duration
	// Hurry ends Drain at once when it is closed: running tasks are cancelled and handed back. Default: Drain is not cut short.
	Hurry <-chan struct{}
	// Log receives failures and state changes. The zero Logger discards them.
	Log zerolog.Logger
}

// abandon is how long a cancelled run may take to return before it is handed back all the same.
const abandon = 2 * time.Second

// Validate refuses, with a [*task.FieldError] for each field, what could not work. Unset fields are fine.
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

func (c Config) withDefaults() Config {
	if c.Concurrency == 0 {
		c.Concurrency = 10
	}
	if c.Drain == 0 {
		c.Drain = 30 * time.Second
	}
	c.Drain = max(c.Drain, 0)
	return c
}

// Handlers is what the consumer needs of a [handlers.Mux].
type Handlers interface {
	// Handler returns what runs tasks of a type.
	Handler(typ string) (handlers.TaskHandler, bool)
	// Types are the types that Handler knows.
	Types() []string
}
