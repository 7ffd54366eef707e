// Package instance is one running process among the others: it registers, keeps its lease, knows whether it leads, and
// leaves in order.
//
// A [Manager] runs a [Stay] for each registration. While the stay's context lives, what the instance claimed is its
// own; the context ends, with a cause, before the lease could run out. [Stay.Lead] runs a function for each term of
// leadership, in a context that ends with the term. All decisions are made by scripts in Redis (see scripts/): the
// newest ready instance of the newest release leads, and nothing here decides from a cached answer.
package instance
