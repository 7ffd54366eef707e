// Package trial puts instances of the program on trial, for `onbeat demo`, `onbeat conformance` and the tests that look at the
// program from outside: the stage on which they are started, stopped, killed and frozen, a recorder that sees only what
// arrives, and the judge of what it saw.
//
// The judge is pure: it compares the evidence with the promises. Its two witnesses are independent: the recorder sees only
// the requests that reached it, and the audit reads only the history in Redis.
package trial
