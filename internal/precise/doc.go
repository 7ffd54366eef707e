// Package precise sleeps more precisely than the Go runtime's timers, which may be a millisecond late while a program is
// idle.
package precise
