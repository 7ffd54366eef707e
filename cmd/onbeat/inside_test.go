package main

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/queue"
)

// inside gives a test access to a namespace like that of its instances.
type inside struct {
	*onbeat.Dispatcher
	rdb   redis.UniversalClient
	queue *queue.Queue
}

func openInside(t *testing.T, url, namespace string) *inside {
	t.Helper()
	at := target{url: url, cfg: onbeat.Config{Namespace: namespace}}
	rdb, err := at.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	d, err := at.dispatcher(rdb)
	if err != nil {
		t.Fatal(err)
	}
	q, err := queue.New(rdb, queue.Partition{Namespace: namespace}, queue.Caps{})
	if err != nil {
		t.Fatal(err)
	}
	return &inside{d, rdb, q}
}
