package histories

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name Redis gives a script; no secret hangs on it
	"encoding/hex"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/testredis"
)

// size returns how many of something a test has: few in CI, all of them in a soak (ONBEAT_SOAK=1).
func size(few, all int) int {
	if os.Getenv("ONBEAT_SOAK") == "1" {
		return all
	}
	return few
}

// stage is a Redis of the test's own, with the faults of it and of its scripts.
type stage struct {
	*testing.T
	server *testredis.Server
	admin  *redis.Client
	broken *swap // nil: the scripts are as they are
}

// newStage starts a Redis that keeps every write that it answered, also when it is killed.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := testredis.Private(t, "--appendonly", "yes", "--appendfsync", "always")
	return &stage{T: t, server: s, admin: s.Client()}
}

// timeout is how long a client waits for a reply.
const timeout = 150 * time.Millisecond

// client is a client with connections of its own, which gives up soon.
func (s *stage) client(change ...func(*redis.Options)) *redis.Client {
	change = append([]func(*redis.Options){func(o *redis.Options) {
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = timeout, timeout, timeout
		o.MaxRetries, o.PoolSize = -1, 2
	}}, change...)
	rdb := s.server.Client(change...)
	if s.broken != nil {
		rdb.AddHook(s.broken)
	}
	return rdb
}

// run lets clients act for a time, and disturbs Redis meanwhile. Each client gets its own randomness, and must return when
// the context ends.
func (s *stage) run(d time.Duration, kill bool, clients int, act func(ctx context.Context, client int, r *rand.Rand)) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), d)
	defer cancel()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { act(ctx, i, rand.New(rand.NewPCG(rand.Uint64(), uint64(i)))) })
	}
	for pause(ctx, 100*time.Millisecond+rand.N(300*time.Millisecond)) {
		s.trouble(kill)
	}
	wg.Wait()
}

// trouble is one fault: Redis freezes, loses its connections, or is killed and started again.
func (s *stage) trouble(kill bool) {
	s.Helper()
	switch n := rand.N(10); {
	case n < 5:
		s.server.Pause()
		time.Sleep(50*time.Millisecond + rand.N(300*time.Millisecond))
		s.server.Resume()
	case n < 9 || !kill:
		if err := s.admin.ClientKillByFilter(s.Context(), "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
			s.Errorf("cut connections: %v", err)
		}
	default:
		s.server.Kill()
		s.server.Restart()
	}
}

// pause waits. It returns false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// swap gives Redis a broken script in place of each script that has a text.
type swap struct {
	old, new string

	mu   sync.Mutex
	shas map[string]string // of a script as it is -> as Redis has it
	hits int
}

func (w *swap) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *swap) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook names the broken script to Redis, and sends its source if Redis does not know it.
func (w *swap) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		if len(args) > 1 {
			text, _ := args[1].(string)
			switch args[0] {
			case "evalsha":
				args[1] = w.sha(text)
			case "eval":
				args[1] = w.source(text)
			}
		}
		return next(ctx, cmd)
	}
}

func (w *swap) sha(of string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if sha, ok := w.shas[of]; ok {
		return sha
	}
	return strings.Repeat("0", 40) // Redis knows no such script, and asks for the source
}

func (w *swap) source(text string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	broken := strings.ReplaceAll(text, w.old, w.new)
	if broken != text {
		w.hits++
	}
	if w.shas == nil {
		w.shas = map[string]string{}
	}
	w.shas[hash(text)] = hash(broken)
	return broken
}

func hash(source string) string {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}
