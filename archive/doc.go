// Package archive says what keeps the history of a namespace for longer than Redis can: each run, what became of each slot, what
// schedules said, and events. Package archive/sqlarchive keeps it in an SQL database; this one imports no driver, so that programs
// without an archive link none.
//
// [Archive.Add] writes a batch and moves the [Position] up to which the namespace is archived, at once, and only if no one else
// moved it. So a batch is archived once: after a crash, or an answer that was lost, the position says whether it was. A run that
// Redis noted twice, because it lost the first note in a failover, is archived once.
//
// The package knows nothing of Redis.
package archive
