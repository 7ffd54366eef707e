//go:build race

package model

// With the race detector Lua runs at a third of its speed, and the workers of a search share little that it could check.
func init() { slow = true }
