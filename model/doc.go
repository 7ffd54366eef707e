// Package model holds onbeat's protocol to its promises, exhaustively. It has nothing but tests.
//
// What goes on between instances is a sequence of script calls, each of which is one atomic step of Redis. So an
// instance is a small program with what it knows, which may be stale (proc_test.go); the same calls are made as the
// program makes them, to the real scripts on the in-process server (wire_test.go); and a search goes through every
// order of them up to a depth (search_test.go), in rooms: a room is who is there, what they do, and how far to look
// (plans_test.go). There instances crash, pause for longer than their lease, lose replies, and have calls arrive late: in
// each room those that it names, because all of them at once leave no depth.
//
// A book is kept beside it of what must be true by the promises (book_test.go and its neighbours): it knows the scripts'
// contracts and none of their code. After each call what Redis holds and what it answered is compared with the book.
//
// What is too much to be searched is walked through at random (walk_test.go). ONBEAT_SOAK=1 looks one step further
// everywhere, ONBEAT_SOAK=2 two, which takes minutes.
//
// What it does not have: what happens within a process, such as a handler's context that ends with the lease; wake-ups,
// and so how soon anything happens; and a Redis that loses writes.
//
// mutants_test.go breaks the scripts on purpose, one at a time, and demands that the search finds each.
package model
