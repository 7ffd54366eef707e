// Package consumer claims due tasks, runs them, and settles the runs.
//
// A [Consumer] is one loop with one round trip: each call settles the runs that ended and claims as many due tasks as
// workers are free. Between calls the loop sleeps until exactly the next due time, or until the session wakes it. The script
// decides whether this instance may claim; the consumer does not. Each run's context is a child of the session's context
// (see package instance), so a run is cancelled before another instance could hold its task.
package consumer
