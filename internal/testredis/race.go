//go:build race

package testredis

// With the race detector, Lua in this process runs at a tenth of the speed of a Redis, and the detector looks at nothing that
// the other half of Each does not have too.
func init() { raced = true }
