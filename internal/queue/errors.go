package queue

import (
	"errors"

	"github.com/onbeat/onbeat/internal/store"
)

// The refusals of the scripts, and the errors of a read or a change. Match them with errors.Is. Package task has those
// that users meet, and package store more of Redis itself.
var (
	// ErrFenced: the calling instance is not registered any more, or its lease ran out. The script did nothing.
	ErrFenced = store.Refusal("FENCED", "instance is fenced")
	// ErrNotLeader: another instance leads, or a newer epoch has begun. The script did nothing.
	ErrNotLeader = store.Refusal("NOTLEADER", "not the leader")
	// ErrStale: a later call of the same generation reached Redis first. The script did nothing.
	ErrStale = store.Refusal("STALE", "stale call")
	// ErrAlive: the generation to recover was not declared dead. The script did nothing.
	ErrAlive = store.Refusal("ALIVE", "generation is alive")
	// ErrPartitions: the namespace is split into another number of partitions; the error of Redis has the number. Nothing was done.
	ErrPartitions = store.Refusal("PARTITIONS", "the namespace has another number of partitions")
	// ErrBulks: as many bulk actions as may be are under way.
	ErrBulks = errors.New("too many bulk actions are under way")
)
