// Package task says what is dispatched: a [Task] is a unit of work with a type, a payload and a due time.
//
// A task is made with [New], shaped by [Option] values, checked by [Task.Validate] and carried through Redis as a record
// ([Encode], [Decode]). The package does no I/O and does not depend on Redis. Packages producer, consumer and
// handlers all use its types.
//
//	t := task.New("invoice.send", Invoice{Number: 42})
//	t.Apply(task.In(10*time.Minute), task.Unique("inv-42", time.Hour))
//	if err := t.Validate(task.Limits{}); err != nil { ... }
package task
