// Package store is how everything above it talks to Redis: it dials the primary that a URL means, runs scripts, tells errors
// apart, waits for replicas and reads the clock. It knows nothing of tasks, instances or locks.
package store
