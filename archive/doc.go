// Package archive keeps the history of a namespace in an SQL database, for longer than Redis can: each run, what became of each
// slot, what schedules said, and events.
//
// [Archive.Add] writes a batch and moves the [Position] up to which the namespace is archived, in one transaction, and only if no
// one else moved it. So a batch is archived once: after a crash, or an answer that was lost, the position says whether it was.
// A run that Redis noted twice, because it lost the first note in a failover, is one row by its key.
//
// The database is PostgreSQL 13 or newer, or a file of SQLite. [Open] makes and migrates the tables, whose names begin with
// onbeat_. On PostgreSQL a day of runs is a partition, and [Archive.Trim] drops those that are too old.
//
// The package knows nothing of Redis.
package archive
