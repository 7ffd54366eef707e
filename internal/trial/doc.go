// Package trial is what `onbeat demo` and `onbeat conformance` put onbeat on trial with: processes of the program itself,
// which can be stopped, killed and frozen, and a receiver that notes what arrives and knows nothing else.
package trial
