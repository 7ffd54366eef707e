// Package wording finds the words in which bad input is refused: the known name that was probably meant, and what a kind of
// value is called.
package wording
