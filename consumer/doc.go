// Package consumer takes due tasks out of their sets, runs them, and settles what became of them.
//
// A [Consumer] is one loop with one round trip: each cycle hands in the runs that ended and takes as many due tasks as
// there are free workers. Between cycles it sleeps until the next due time exactly, or until it is woken. Whether it may
// take anything is decided by the script, not here. What it runs hangs on the stay's context (see package instance), so
// it is cancelled before its claim could be given to another.
package consumer
