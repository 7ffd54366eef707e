// Package integration holds the tests that drive the program as its users do: real processes of the real binary, a real
// Redis, and a recorder that is independent of both. It has no code of its own.
//
// The recorder is an HTTP server that logs each request. It knows nothing of onbeat but the headers of the http handler. So
// the tests can compare its record of a slot with the schedule, and with `onbeat audit`.
package integration
