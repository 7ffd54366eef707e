package store

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Layer is a client over another one. There is one type for all layers: go-redis has 600 commands, and each type that embeds its
// client puts a method for each of them into the program.
type Layer struct {
	redis.UniversalClient
	// Over is what the layer adds. If it has a method Process, commands go through that.
	Over any
}

// Process hands a command to what is over the client, if that wants to see it.
func (l *Layer) Process(ctx context.Context, cmd redis.Cmder) error {
	if over, ok := l.Over.(interface {
		Process(ctx context.Context, cmd redis.Cmder) error
	}); ok {
		return over.Process(ctx, cmd)
	}
	return l.UniversalClient.Process(ctx, cmd)
}

// ReloadState is for [reloadState].
func (l *Layer) ReloadState(ctx context.Context) { reloadState(ctx, l.UniversalClient) }

// over returns the layer of a client that is a T, or nothing.
func over[T any](rdb redis.UniversalClient) (layer T, ok bool) {
	if l, is := rdb.(*Layer); is {
		layer, ok = l.Over.(T)
	}
	return layer, ok
}
