// Package sqlarchive keeps an archive in an SQL database: PostgreSQL 13 or newer, or a file of SQLite. [Config] is what a dispatcher
// takes.
//
// A batch and the position behind it are one transaction. A run that was noted twice is one row by its key. [Config.Open] makes and
// migrates the tables, whose names begin with onbeat_. On PostgreSQL a day of runs is a partition, and a trim drops those that
// are too old.
//
// The program imports the database that it uses: package postgres of onbeat, or modernc.org/sqlite.
package sqlarchive
