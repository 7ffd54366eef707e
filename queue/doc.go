// Package queue is the due sets and everything that moves in and out of them: one typed method for each atomic step.
//
// The steps are Lua scripts (scripts/*.lua) that run inside Redis, by its clock, on declared keys of one hash tag; the
// methods marshal, split and classify, and decide nothing. Keys are named in [Partition.Keys], and only there. Errors
// are told apart by [store.Classify]: what may be tried again, what was refused, and why.
//
// Enqueue adds tasks, Advance pushes the slots of schedules, Cycle settles and claims in one round trip, Recover takes
// back what a dead instance ran, Change alters schedules.
package queue
