// Package lock is a lease lock on Redis, for programs that need only that: one holder of a name at a time, across any
// number of processes and machines.
//
// # A tour
//
//	held, err := lock.Acquire(ctx, rdb, "nightly-report", lock.Options{})
//	if err != nil {
//		return err
//	}
//	defer held.Release(context.WithoutCancel(ctx))
//	return report(held.Context(), held.Fence())
//
// [Acquire] waits for the lock. [TryAcquire] does not: it returns [ErrHeld] or [ErrUnreachable]. To take many locks with
// the same options, make one [Locker]: [New] makes it on one Redis, and [Quorum] on several.
//
// A lock is a lease: Redis forgets it a TTL after the last heartbeat, so the lock of a holder that dies becomes free.
// [Lock.Context] ends, with a cause, before that can happen. Run all work under the lock with that context.
//
// Waiters stand in a line in Redis, and sleep. A release wakes only the first of them, over pub/sub. If a holder dies, its
// waiters notice one after the other, when the lease that they saw has run out. The order is not promised: a caller that
// has just come may be faster than the waiter that was woken.
//
// For a short job that several machines start by their own clocks, such as a crontab, use [Options.AtLeastFor]. Choose it
// longer than the clocks differ and shorter than the job's interval. Then all machines but the first find the lock held,
// even if the job took a millisecond.
//
// # What a lock cannot do
//
// The context ends in time in a process that runs. A frozen process (a VM that is moved, a laptop that sleeps, a long pause
// of the garbage collector) cannot notice that its lease ran out. When it wakes, its first actions happen without the lock.
// The same goes for a request that is already under way. Only the resource that the holder writes to can tell: [Lock.Fence]
// is larger for each later holder, so keep the largest fence seen beside the data and refuse smaller ones. Without that, a
// lock saves work that would be done twice, but does not guarantee that no work is.
//
// A lock on one Redis is lost when Redis forgets its write. If a replica is promoted before it heard of the lock, it grants
// the lock to a second holder: across fifty planned failovers of Sentinel, 2 % of the holders were not alone, for 27 ms at
// most. With a client of onbeat.Durable that is strict and waits for all replicas, a lock is not held before each replica
// knows it. [Quorum] is for users with several servers; its documentation says what it does not promise.
//
// # What not to use
//
//   - [context.Background] for work under the lock: a lost lock no longer stops the work.
//   - A context with a timeout to bound the wait: it bounds the work too. [Options.Wait] bounds only the wait.
//   - A lock to run tasks of this dispatcher one at a time: a task's key does that, and waiting for it costs nothing.
package lock
