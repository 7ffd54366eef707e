// Package testpostgres is the PostgreSQL that tests run on: the one that is installed here, as child processes of the test.
//
// [Database] is an empty database on a server that the tests of a package share. [Private] is a server of one test alone, which
// may stop it, kill it and start it again. Both listen on 127.0.0.1. PostgreSQL refuses to run as root, so there the user
// postgres runs it.
//
// Where it is not installed, the test is skipped, or fails if ONBEAT_REQUIRE_REAL=1.
package testpostgres
