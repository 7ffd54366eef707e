//go:build race

package simulation

// With the race detector a plan takes five times as long. Its goroutines are those of the packages, which it looks at
// here too; seeds in number, and faults that are put back, are for a run without it.
func init() { slow = true }
