package testredis

import (
	"fmt"
	"strings"
	"testing"
	"time"

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

func TestPrivate_withoutFileLosesItsData(t *testing.T) {
	t.Parallel()
	s := Private(t)
	if err := s.Client().Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Restart()
	if n, err := s.Client().Exists(t.Context(), "k").Result(); n != 0 || err != nil {
		t.Errorf("after Restart, Exists = %d, %v; want 0", n, err)
	}
}

func TestPrivate_pausedItAnswersNothing(t *testing.T) {
	t.Parallel()
	s := Private(t)
	rdb := s.Client(noRetry)
	if err := rdb.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	hasty := s.Client(noRetry, func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond })
	s.Pause()
	if err := hasty.Get(t.Context(), "k").Err(); err == nil {
		t.Error("a paused server answered")
	}
	s.Resume()
	Eventually(t, 20*time.Second, func() error { return rdb.Get(t.Context(), "k").Err() }, "an answer after Resume")
}

func TestPrivate_pausedItCanBeRemovedAndKilled(t *testing.T) {
	t.Parallel()
	Private(t).Pause() // and is removed so
	s := Private(t)
	s.Pause()
	s.Kill()
	s.Restart()
	if err := s.Client().Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

func TestPrivate_isTheTestsOwn(t *testing.T) {
	t.Parallel()
	a, b := Private(t), Private(t)
	if a.Addr() == b.Addr() {
		t.Errorf("two servers at %s", a.Addr())
	}
	if !strings.Contains(a.String(), "redis-server") {
		t.Errorf("String = %q, want its name", a)
	}
}
