package onbeat

import (
	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/secret"
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
func Dial(rawURL string) (redis.UniversalClient, error) { return store.Dial(rawURL) }

// Durable returns a client whose scripts return once replicas have their writes. Give it to package lock. A [Dispatcher]
// makes its own from [Config.Durability]. Closing the client closes rdb.
func Durable(rdb redis.UniversalClient, d Durability) redis.UniversalClient {
	return store.Durable(rdb, d)
}

// Dialer is [Dial] with hooks for what a client notices. The zero value is Dial.
type Dialer = store.Dialer

// Redacted returns a Redis URL, valid or not, without its passwords.
func Redacted(rawURL string) string { return secret.URL(rawURL) }
