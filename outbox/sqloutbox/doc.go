// Package sqloutbox opens the database of an outbox: PostgreSQL from 13 on, or a file of SQLite. [Config] is what a dispatcher takes
// to move tasks; a program that only adds them needs package outbox alone.
//
// The drivers, pgx and modernc.org/sqlite, are linked into programs that import this package, and into no others.
package sqloutbox
