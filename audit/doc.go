// Package audit compares the slots that a schedule should have had with what happened to each, from the history that
// every step leaves in Redis.
//
// [Run] reads the rules that held, the notes of the history and what still stands from Redis, and gives every slot
// exactly one [Verdict]. Four verdicts say that a promise broke: a slot that nothing accounts for, one that ran twice with
// no reason, one that ran before its time, and a run of a slot that is not on the grid. Everything else, a slot skipped by
// its policy or paused by hand included, is as was promised.
//
// The history is capped. What happened before its oldest entry is unknown, and is never called lost.
package audit
