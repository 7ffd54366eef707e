// Package store talks to Redis for all other packages. It dials the primary of a URL, runs scripts, tells errors apart,
// waits for replicas and reads the clock of Redis. It knows nothing of tasks, instances or locks.
package store
