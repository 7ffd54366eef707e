// Package notify tells people what goes wrong, by webhooks.
//
// A [Target] is one webhook: a program that takes JSON, or a chat. It gets messages about topics ([Dead], [Missed], [Stale],
// [Failing], [Hung] and others), of all schedules or of some. All notices of one topic within a window of time are one message, with their
// number and the first few.
//
// A [Notifier] runs on the leader's side. It follows the events, the history and the dead tasks of a partition, and enqueues each
// message as an ordinary task of the type [Type]. Redis keeps its position together with the messages to enqueue, so a
// change of leader neither loses nor doubles a message. A [Handler] runs these tasks, on any instance whose
// config has the target. The task names the target and not its URL: URLs and keys are secrets, and stay in the process.
//
// Requests are signed as Standard Webhooks says (standardwebhooks.com); [Verify] is the receiver's part of that.
package notify
