package queue

import "github.com/onbeat/onbeat/task"

// Failed is a task after a run that failed, or was lost: with one attempt more, and its record as it is written again. Both the
// instance that ran it and the leader that takes it back from a lost one go by it.
type Failed struct {
	task.Task
	Record []byte
	Dead   bool // it does not run again: that was its last attempt
}

// Fail counts the attempt and works out what follows. For good, the task is dead whatever attempts it has left.
func Fail(t *task.Task, f task.Failure, forGood bool) Failed {
	next := Failed{Task: *t}
	next.Fail(f)
	next.Overlap = t.Overlap.Begun()
	next.Record = Rewrite(&next.Task)
	next.Dead = forGood || next.Attempts >= t.AttemptsAllowed()
	return next
}
