package admin

import (
	"errors"
	"strings"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// RightsPage is where to look for the rights that a user of Redis needs.
const RightsPage = "docs/rights.md lists the rights that each part needs"

// Hint returns what a person can do about an error that has a common cause, or "". An error that an API answered says so itself.
func Hint(err error) string {
	hint := hintOf(err)
	if hint != "" && strings.Contains(err.Error(), hint) {
		return ""
	}
	return hint
}

func hintOf(err error) string {
	switch {
	case errors.Is(err, archive.ErrUnavailable):
		return "is the database of the archive running? name another with --archive or ONBEAT_ARCHIVE"
	case errors.Is(err, archive.ErrDenied):
		return "check the user, the password and the database of archive.url"
	case errors.Is(err, task.ErrFull):
		return "raise maxmemory, or see onbeat doctor"
	case errors.Is(err, store.ErrWrongType):
		return `"onbeat doctor" names the key; a running leader sets it aside within 30 s`
	case errors.Is(err, task.ErrDenied) && strings.Contains(err.Error(), "docs/rights.md"): // it says what is missing
		return ""
	case store.LacksRight(err):
		return "the user lacks a right: " + RightsPage
	case errors.Is(err, task.ErrDenied):
		return "check the user and password of the Redis URL"
	case errors.Is(err, task.ErrUnreplicated):
		return "the primary has the change, and it is lost if the primary is lost now; when the replicas are back (see onbeat doctor), repeat the command"
	case errors.Is(err, task.ErrNoKey):
		return "give this process the key: encryption.keys of its config"
	case errors.Is(err, queue.ErrNumberLost):
		return "the instances that say partitions write it again; do not use the namespace without partitions"
	case errors.Is(err, queue.ErrPartitions):
		return "give partitions the number that stands behind PARTITIONS, which never changes; docs/scaling.md has the way to another"
	case strings.Contains(err.Error(), "cluster support disabled"):
		return "this Redis is not part of a cluster: use redis:// or rediss://"
	case OfReplica(err):
		return namePrimary
	}
	return busyHint(err)
}

// busyHint returns what to do about what Redis cannot do now, or "".
func busyHint(err error) string {
	switch {
	case !errors.Is(err, task.ErrBusy):
		return ""
	case strings.Contains(err.Error(), "MOVED "): // a client of the cluster follows it
		return OneNode
	case store.OfMove(err):
		return "is the cluster being resharded? this ends with the resharding; if a move was broken off, run redis-cli --cluster fix HOST:PORT"
	case strings.Contains(err.Error(), "CLUSTERDOWN"), strings.Contains(err.Error(), "while the cluster is down"):
		return "a part of the cluster has no primary: see redis-cli --cluster check HOST:PORT"
	case strings.Contains(err.Error(), "max number of clients"):
		return "raise maxclients, or close idle connections: CLIENT LIST shows who has them, and the timeout setting closes them"
	}
	return ""
}

// OneNode is the hint for a URL of one node where a cluster is meant.
const OneNode = "the URL names one node of a cluster: use redis-cluster:// or rediss-cluster://"

// Hints about a Redis that takes no writes. The second is for a URL that names sentinels.
const (
	namePrimary  = "name the primary, or use redis-sentinel:// or redis-cluster://"
	askSentinels = "the sentinels name a replica, or did so until now: run `redis-cli -p 26379 sentinel masters` on each"
)

// PrimaryHint returns what to do about a Redis of that URL that takes no writes.
func PrimaryHint(url string) string {
	if scheme, _, _ := strings.Cut(url, "://"); strings.HasSuffix(scheme, "-sentinel") {
		return askSentinels
	}
	return namePrimary
}

// OfReplica reports whether a replica was asked to write.
func OfReplica(err error) bool {
	return errors.Is(err, task.ErrBusy) && strings.Contains(err.Error(), "READONLY")
}

// Brief returns the text of an error without the place in a script where it arose, which helps no user.
func Brief(err error) string {
	said, _, _ := strings.Cut(err.Error(), " script: ")
	return said
}
