// Package wording helps to refuse invalid input: it finds the known name that the user probably meant, and names the kind
// of a value.
package wording
