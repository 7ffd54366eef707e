package queue

import (
	"errors"

	"github.com/onbeat/onbeat/internal/store"
)

// The refusals of the scripts, and the errors of a read or a change. Match them with errors.Is. Package store has those of
// Redis itself.
var (
	// ErrFenced: the calling instance is not registered any more, or its lease ran out. The script did nothing.
	ErrFenced = store.Refusal("FENCED", "instance is fenced")
	// ErrNotLeader: another instance leads, or a newer epoch has begun. The script did nothing.
	ErrNotLeader = store.Refusal("NOTLEADER", "not the leader")
	// ErrStale: a later call of the same generation reached Redis first. The script did nothing.
	ErrStale = store.Refusal("STALE", "stale call")
	// ErrAlive: the generation to recover was not declared dead. The script did nothing.
	ErrAlive = store.Refusal("ALIVE", "generation is alive")
	// ErrNotFound: there is no such task, schedule, release or instance.
	ErrNotFound = errors.New("not found")
	// ErrRevision: the schedule has another revision than the caller said.
	ErrRevision = errors.New("another revision")
	// ErrBulks: as many bulk actions as may be are under way.
	ErrBulks = errors.New("too many bulk actions are under way")
	// ErrChanged: another caller changed it at the same time, at each of our tries.
	ErrChanged = errors.New("changed at the same time")
)
