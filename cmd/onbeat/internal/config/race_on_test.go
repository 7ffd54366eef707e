//go:build race

package config

// raced says that the race detector slows the tests down.
const raced = true
