// Package precise sleeps more exactly than the Go runtime's timers, which may be a millisecond late while a program is
// idle.
package precise
