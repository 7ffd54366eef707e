// Package model holds onbeat's protocol to its promises, exhaustively. It has nothing but tests.
//
// Instances work together by script calls, and each call is one atomic step of Redis. So the model's instance is a small
// program with its own knowledge, which may be stale (proc_test.go). It makes the same calls as the real program, to the
// real scripts on the in-process server (wire_test.go). A search tries every order of these calls up to a depth
// (search_test.go). It searches in rooms: a room says which instances there are, what they do, and how far to look
// (plans_test.go). In a room instances crash, pause for longer than their lease, lose replies, or have calls arrive late.
// Each room names the faults that it has, because with all of them at once the search would not get deep.
//
// Beside the search the model keeps a book of what must be true by the promises (book_test.go and its neighbours). The book
// knows the scripts' contracts, and none of their code. After each call the model compares the book with the reply, and with
// what Redis holds.
//
// A monitor suspects the leader with the evidence that the program demands, and also with none (looks_test.go): no promise may
// rest on that evidence.
//
// Everything at once is too much to be searched: random walks go through it (walk_test.go). ONBEAT_SOAK=1 looks one step
// further everywhere, ONBEAT_SOAK=2 two steps, which takes minutes.
//
// The model leaves out what happens within a process, such as a handler's context that ends with the lease. It leaves out
// wake-ups, and so how soon anything happens, and a Redis that loses writes.
//
// mutants_test.go breaks the scripts on purpose, one at a time, and demands that the search finds each break.
package model
