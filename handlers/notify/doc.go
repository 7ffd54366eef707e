// Package notify tells people what goes wrong, by webhooks.
//
// A [Target] is one webhook: a program that takes JSON, or a chat. It hears of topics ([Dead], [Missed], [Stale], [Failing] and
// others), of all schedules or of some. What happens within a window of time is one message, however often it happened: it says
// how often, and names the first few.
//
// A [Notifier] runs on the leader's side. It follows the events, the history and the dead tasks of a partition, and enqueues each
// message as an ordinary task of the type [Type]. Up to where it has followed is kept in Redis together with the messages that
// are to be enqueued, so a change of leader neither loses nor doubles one. A [Handler] runs these tasks, on any instance whose
// config has the target. The task names the target and not its URL: URLs and keys are secrets, and stay in the process.
//
// Requests are signed as Standard Webhooks says (standardwebhooks.com); [Verify] is the receiver's part of that.
package notify
