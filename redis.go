package onbeat

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/store"
)

// Dial returns a Redis client for a URL, tuned for a [Dispatcher]. It does not connect yet; close it when done.
//
//	redis://user:password@host:6379/0
//	redis-sentinel://user:password@host:26379,host:26379/master-name/0
//	redis-cluster://user:password@host:6379,host:6379
//
// With rediss:// the connection is encrypted. Dial refuses an invalid URL with a [*task.FieldError], which does not show
// its password. docs/reference.md has the parameters, also those for certificates.
func Dial(rawURL string) (redis.UniversalClient, error) { return Dialer{}.Dial(rawURL) }

// Dialer is [Dial] with a log. The zero value is Dial.
type Dialer struct {
	// Log receives a warning for sentinels that name a server which is not a primary. The zero Logger discards it.
	Log zerolog.Logger
}

// Dial is [Dial].
func (d Dialer) Dial(rawURL string) (redis.UniversalClient, error) {
	return store.Dialer(d).Dial(rawURL)
}

// Durability says for how many replicas a write waits (the WAIT of Redis).
//
// A write that Redis answered is on that many replicas, so it outlives the primary if one of them is promoted. This is no
// consensus: a sentinel may promote another replica. Unless Strict is set, too few or too slow replicas do not stop the
// work: it goes on, is as durable as without, and Report is called.
type Durability struct {
	// Replicas is how many replicas must have a write before a call returns. Default 0: calls do not wait.
	Replicas int
	// Timeout is how long a call waits for them. Default 200ms, at most 2s, and less than the client's read timeout.
	Timeout time.Duration
	// Strict: a write that too few replicas have returns [task.ErrUnreplicated], and the caller retries. So no task begins
	// whose claim the next primary may not have, and no task begins while there are too few replicas. If Replicas is the
	// number of all replicas, no slot runs twice in a failover.
	Strict bool
	// Report is called when there are too few replicas, with how many there were, and when there are enough again. Default: a
	// [Dispatcher] logs it.
	Report func(replicas int, enough bool)
}

// Durable returns a client whose scripts return once replicas have their writes. Give it to package lock. A [Dispatcher]
// makes its own from [Config.Durability]. Closing the client closes rdb.
func Durable(rdb redis.UniversalClient, d Durability) redis.UniversalClient {
	return store.Durable(rdb, store.Durability(d))
}
