// Package sqloutbox opens the database of an outbox: PostgreSQL from 13 on, or a file of SQLite. [Config] is what a dispatcher takes
// to move tasks; a program that only adds them needs package outbox alone.
//
// The program imports the database that it uses: package postgres of onbeat, or modernc.org/sqlite.
package sqloutbox
