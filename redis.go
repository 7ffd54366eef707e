package onbeat

import (
	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/store"
)

// Dial returns a Redis client for a URL, tuned for a [Dispatcher]. It does not connect yet; close it when done.
//
//	redis://user:password@host:6379/0
//	redis-sentinel://user:password@host:26379,host:26379/master-name/0
//	redis-cluster://user:password@host:6379,host:6379
//
// With rediss:// the connection is encrypted. A URL that cannot be used is refused with a [*task.FieldError], which does not
// show its password. See [store.Dial] for certificates and other parameters.
func Dial(rawURL string) (redis.UniversalClient, error) { return store.Dial(rawURL) }

// Dialer is [Dial] for those who want to read of what a client finds. The zero value is Dial.
type Dialer = store.Dialer

// Redacted is a Redis URL, or what was meant as one, without its passwords.
func Redacted(rawURL string) string { return store.Redacted(rawURL) }
