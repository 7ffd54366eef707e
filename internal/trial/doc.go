// Package trial has what `onbeat demo` and `onbeat conformance` need to put onbeat on trial: processes of the program
// itself, which can be stopped, killed and frozen, and a receiver that records only what arrives.
package trial
