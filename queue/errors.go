package queue

import (
	"errors"

	"github.com/onbeat/onbeat/store"
)

// What scripts refuse, and what is not there. Match with errors.Is. What Redis itself refuses is told apart in package store.
var (
	// ErrFenced: this instance is not registered any more, or its lease ran out. Nothing was done.
	ErrFenced = store.Refusal("FENCED", "instance is fenced")
	// ErrNotLeader: another instance leads, or a newer epoch has begun. Nothing was done.
	ErrNotLeader = store.Refusal("NOTLEADER", "not the leader")
	// ErrStale: a later call of the same instance came first. Nothing was done.
	ErrStale = store.Refusal("STALE", "stale call")
	// ErrAlive: the generation whose tasks were to be recovered was not declared dead. Nothing was done.
	ErrAlive = store.Refusal("ALIVE", "generation is alive")
	// ErrNotFound: there is no such task, schedule or release.
	ErrNotFound = errors.New("not found")
	// ErrChanged: somebody else changed it at the same time, more often than we tried again.
	ErrChanged = errors.New("changed at the same time")
)
