package store_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
)

// A cluster answers as long as one of its primaries does.
func TestPing_asksAnyPrimary(t *testing.T) {
	t.Parallel()
	c := testredis.Cluster(t, "--cluster-require-full-coverage", "no")
	rdb, err := store.Dial(c.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	if err := store.Ping(t.Context(), rdb); err != nil {
		t.Error(err)
	}
	c.Nodes[0].Pause()
	defer c.Nodes[0].Resume()
	if err := store.Ping(t.Context(), rdb); err != nil {
		t.Errorf("one of three hangs: %v", err)
	}
	gone := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer gone.Close()
	if err := store.Ping(t.Context(), gone); err == nil {
		t.Error("nothing answers, and that was no error")
	}
}
