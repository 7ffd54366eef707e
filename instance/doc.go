// Package instance is one running process among the others: it registers, keeps its lease, knows whether it leads, and
// leaves in order.
//
// A [Manager] runs a [Session] for each registration. While the session's context lives, the instance holds its claims. The
// context ends, with a cause, before the lease could run out. [Session.Lead] runs a function for each term, in a context
// that ends with the term. Scripts in Redis decide everything (see scripts/): the newest ready instance of the newest
// release leads. No code of this package decides from a cached answer.
package instance
