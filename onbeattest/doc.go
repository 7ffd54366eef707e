// Package onbeattest tests the handlers and the schedules of a program, without a Redis to install and without waiting.
//
// [Run] runs a handler once, with the slot, the attempt and the payload that a test chooses, and says what the dispatcher would make of
// the outcome: done, retried, dead or refused.
//
// [Redis] is a Redis in the memory of the test, and [Start] runs a dispatcher until the test ends. Within a bubble of
// [testing/synctest] both follow its clock: to move it, the test sleeps. A day of a schedule passes in a moment.
//
//	synctest.Test(t, func(t *testing.T) {
//		d, err := onbeat.New(onbeattest.Redis(t), onbeat.Config{Namespace: "shop"})
//		...
//		onbeattest.Start(t, d)
//		time.Sleep(24 * time.Hour) // all that is due by then has begun
//		synctest.Wait()            // and ended, or sleeps
//	})
//
// The Redis in memory is for tests of a program's own logic. It keeps nothing, and has no replica.
package onbeattest
