//go:build race

package simulation

// With the race detector a plan takes five times as long. The detector checks the goroutines of the packages here too. Many
// seeds, and mutants, are for a run without it.
func init() { slow = true }
