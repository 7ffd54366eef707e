package consumer

import (
	"time"

	"github.com/onbeat/onbeat/task"
)

// Observer is told what a consumer does. Its methods may be called from several goroutines at once. They must not block, nor
// keep the task.
type Observer interface {
	// Workers is told how many tasks run at once at most, when the consumer is made.
	Workers(n int)
	// Claimed is told of each call that was to claim tasks: how many it claimed, and whether this instance may take work. After
	// an error neither is known.
	Claimed(n int, may bool, err error)
	// Began is told of each run that begins. Task.Claimed says when, by the clock of Redis.
	Began(t *task.Task)
	// Ended is told of each run whose handler returned, and of what became of it: done, failed, dead, cancelled or returned; lost
	// if the lease was lost meanwhile.
	Ended(t *task.Task, outcome task.Outcome, took time.Duration)
}
