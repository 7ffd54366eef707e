// Package integration holds the tests that drive the program as its users do: real processes of the real binary, a real
// Redis, and a recorder that is independent of both. It has no code of its own.
//
// The recorder is an HTTP server that logs what arrived. It knows nothing of onbeat but the headers of the http handler,
// so what it says of a slot can be held against what the schedule promised and what `onbeat audit` says.
package integration
