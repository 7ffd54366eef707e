// Package producer puts work into the due sets.
//
// A [Producer] adds tasks, one or thousands a call. A [Scheduler] turns schedules into tasks while its instance leads. It
// pushes every slot up to a horizon ahead, so that the loss of a leader for less than the horizon delays nothing. It pushes
// each slot once, because the script that pushes a slot compares the schedule's last run. [Schedules] lists, changes,
// pauses and triggers schedules. None of them needs to run where the work is done.
package producer
