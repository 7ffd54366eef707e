// Package histories checks what real runs looked like from outside. It has nothing but tests.
//
// Several clients ask a real Redis for leases, claims and locks, through the scripts of the program. Meanwhile Redis is
// frozen, killed or restarted, its connections are cut, and clients pause for longer than their lease. A history records
// each call, its reply, and the two moments between which it happened. Porcupine then looks for an order of those calls that
// a specification allows (*_spec_test.go), with no call moved out of its time. If there is no such order, a promise broke.
//
// A specification is a small model of the promises, and knows none of the scripts' code. It says which instances are
// registered, which one leads and in which epoch; where a task is, and under which fence; which client has a lock. A call
// with a lost reply may have taken effect at any later moment, or never. The replies tell the clock of Redis: a lease may have
// run out if that clock allows it, and must have if no other explanation is left.
//
// The tests show that these runs, under these faults, kept the promises. They do not show that every run does. For that,
// model/ searches all orders of calls, up to a depth, on an in-process server; here the server, the network and the clock
// are real, and the runs are long. In these runs Redis keeps every write that it answered; integration/ tries a Redis that
// loses writes. Whether a client believes that it holds a lock is judged by the clock of this process.
//
// breaks_test.go breaks the scripts on purpose, one at a time, and demands that the histories show each break.
package histories
