// Package producer puts work into the due sets.
//
// A [Producer] adds tasks, one or thousands a call. A [Scheduler] turns schedules into tasks while its instance leads:
// it pushes every slot up to a horizon ahead, so that a leader's death shorter than the horizon delays nothing, and each
// slot once, because the script that pushes it compares the schedule's last run. [Schedules] lists, changes, pauses and
// triggers them. None of them needs to run where the work is done.
package producer
