// Package network holds the tests that run the program behind a network that fails: slow, cut, half-open, split. Each
// instance reaches Redis through a toxiproxy of its own.
//
// It is a module of its own, so that programs that use onbeat do not get toxiproxy and its dependencies into their go.sum.
package network
