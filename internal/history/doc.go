// Package history is the one vocabulary of what became of the slots of schedules: the words, how they are written into the
// history in Redis, and how they are read. Lua writes a few of them too, and no others.
package history
