// Package lock is a lease lock on Redis, for those who need only that: one holder of a name at a time, over any number
// of processes and machines.
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
// [Acquire] waits for the lock, [TryAcquire] does not: it tells [ErrHeld] from [ErrUnreachable]. Many locks with the same
// options come from one [Locker], which [New] makes of a Redis and [Quorum] of several.
//
// What is held is a lease: Redis forgets it a TTL after the last heartbeat, so a holder that dies frees it. [Lock.Context]
// ends, with a cause, before that can happen. Work under the lock hangs on that context.
//
// Who waits is in a line in Redis, and sleeps. A release wakes the first of it, and nobody else, over pub/sub; a holder
// that died is noticed when the lease that was seen has run out, by one waiter after the other. The order is not
// promised: somebody who just comes may be faster than the one that was woken.
//
// A short job that several machines start by their own clocks, a crontab, takes [Options.AtLeastFor]: longer than the
// clocks differ, shorter than the job's interval. All but the first find it held, even if the job took a millisecond.
//
// # What a lock cannot do
//
// The context ends in time on a process that runs. One that is frozen (a VM that is moved, a laptop that sleeps, a long
// pause of the garbage collector) cannot notice that its lease ran out; when it wakes, what it does first it does
// without the lock. The same goes for a request that is already on its way. Only what is written to can tell:
// [Lock.Fence] is larger for each later holder, so keep the largest seen beside the data and refuse smaller ones.
// Without that, a lock saves work that would be done twice, and does not promise that it is not.
//
// Nor does a lock on one Redis outlive what Redis forgets. A replica that is promoted before it heard of the lock gives it
// to a second holder: across fifty planned failovers of Sentinel 2 % of the holders were not alone, for 27 ms at most. On a client of
// [store.Durable] that is strict, with all replicas, a lock is not held before each of them knows it. [Quorum] is for those
// who have several servers; it says what it does not promise.
//
// # What not to use
//
//   - [context.Background] for work under the lock: a lost lock no longer stops it.
//   - A context with a timeout to bound the waiting: it bounds the work too. [Options.Wait] bounds the waiting alone.
//   - A lock to have tasks of this dispatcher run one at a time: a task's key does that, and its waiting costs nothing.
package lock
