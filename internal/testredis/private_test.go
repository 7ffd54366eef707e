package testredis

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

func noRetry(o *redis.Options) { o.MaxRetries = -1 }

func TestPrivate_keepsPortAndFileOverKill(t *testing.T) {
	t.Parallel()
	s := Private(t, "--appendonly", "yes")
	rdb := s.Client(noRetry)
	for i, end := range []func(){s.Kill, s.Stop, func() {}} {
		if err := rdb.Set(t.Context(), fmt.Sprint(i), "kept", 0).Err(); err != nil {
			t.Fatal(err)
		}
		before := s.Addr()
		end()
		if i < 2 {
			if err := rdb.Ping(t.Context()).Err(); err == nil {
				t.Error("it answers although it was ended")
			}
		}
		s.Restart()
		if s.Addr() != before {
			t.Errorf("address after Restart = %s, was %s", s.Addr(), before)
		}
		fresh := s.Client()
		if got, err := fresh.Get(t.Context(), fmt.Sprint(i)).Result(); got != "kept" || err != nil {
			t.Errorf("after restart %d: %q, %v; want kept", i, got, err)
		}
	}
}
