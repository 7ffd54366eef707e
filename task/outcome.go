package task

// Outcome says what became of a run, or of slots. A newer release may write outcomes that this one does not know.
//
// A run ends as "done", "failed" (it is retried), "dead" (its last attempt failed), "lost" (its instance was lost), "cancelled" (by
// hand) or "returned" (handed back at shutdown; the attempt does not count). A slot that did not run was "skipped" (by its overlap
// policy, or because too many wait), "missed" (no instance led when it was due), "paused", "changed" (the rule was), "deleted" or
// "retired" (the schedule was), or "forgotten" (Redis lost what became of it).
type Outcome string
