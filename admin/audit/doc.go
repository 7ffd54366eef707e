// Package audit compares the slots that a schedule should have had with what happened to each, from the history that
// every step leaves in Redis.
//
// [Auditor.Run] reads from Redis the rules that held, the notes of the history, and which tasks are still there. It gives every
// slot exactly one [Verdict]. Four verdicts say that a promise broke: a slot that nothing accounts for, a slot that ran
// twice without a reason, a slot that ran before its time, and a run for a time that is not on the grid. Everything else is
// as promised, such as a slot that its policy skipped or that a user paused.
//
// The history is capped. Everything before its oldest entry is unknown, and is never called lost. With an archive the history goes on
// there; if entries were lost before they were archived, their slots are unknown too.
package audit
