// Package outbox enqueues tasks within a transaction of a SQL database: a task is there if the transaction commits, and is not if it
// does not.
//
// [Outbox.Add] writes tasks into the table onbeat_outbox, in the caller's own transaction. A [Mover], which runs on every instance
// whose config names the database, moves them to Redis, each once. PostgreSQL from 13 on, and SQLite.
//
// Each once: a mover locks rows, adds their tasks to Redis, deletes the rows and commits. If it dies in between, another mover
// finds the rows again. In the step that adds a task, Redis also gets a mark with the name of its row, and refuses a row whose mark is
// there. The mark outlives the row, and any call of a mover that was held up on its way.
package outbox
