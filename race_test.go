//go:build race

package onbeat_test

func init() { raced = true }
