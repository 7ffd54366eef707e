// Package histories checks what real runs looked like from outside. It has nothing but tests.
//
// Several clients ask a real Redis for leases, claims and locks, through the scripts of the program, while Redis is
// frozen, killed, restarted, or its connections are cut, and while clients pause for longer than their lease. What each
// asked, what it was answered, and between which two moments, is a history. Porcupine then looks for an order of those
// calls, none moved out of its time, that a specification allows (*_spec_test.go); if there is none, a promise broke.
//
// A specification is a small model of what is promised and knows none of the scripts' code: who is registered and
// leads, in which epoch; where a task is, and under which fence; who has a lock. A call whose reply was lost may have
// taken effect at any later moment, or never. A lease may have run out where the clock of Redis, as the replies have it,
// allows it, and must have where it leaves no other way.
//
// What it shows is that these runs, under these faults, kept to the promises. It does not show that every run does:
// model/ searches all orders of calls, up to a depth, on an in-process server; here the server, the network and the
// clock are real, and the runs are long. Redis keeps all it answered in these runs: what happens when it loses writes is
// tried in integration/. A lock that is believed to be held is judged by the clock of this process.
//
// breaks_test.go breaks the scripts on purpose, one at a time, and demands that the histories show it.
package histories
