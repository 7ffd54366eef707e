// Package queue holds the due sets, and moves tasks in and out of them: one typed method for each atomic step.
//
// The steps are Lua scripts (scripts/*.lua) that run inside Redis, by its clock, on declared keys of one hash tag. The
// methods marshal arguments, split batches and classify errors; the scripts decide. [Partition.Keys] names all keys, and
// no other code does. [store.Classify] tells errors apart: which calls may be retried, and what was refused and why.
//
// Enqueue adds tasks, Advance pushes the slots of schedules, Cycle settles and claims in one round trip, Recover takes
// back the runs of a dead generation, and Change changes schedules.
package queue
