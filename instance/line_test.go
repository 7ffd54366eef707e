package instance

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// line is what happens on the way from one client to Redis and back. Pub/sub does not go over it.
type line struct {
	mu    sync.Mutex
	late  time.Duration // by how much replies are late
	held  chan struct{} // calls wait until it is closed, whatever their context says
	calls int
	asked time.Time // when the last call that got a reply was made
}

func tap(t testing.TB, rdb *redis.Client) *line {
	l := &line{}
	rdb.AddHook(l)
	t.Cleanup(l.release)
	return l
}

func (l *line) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (l *line) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *line) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		asked := time.Now()
		l.mu.Lock()
		l.calls++
		held, late := l.held, l.late
		l.mu.Unlock()
		if held != nil {
			<-held
		}
		err := next(ctx, cmd)
		time.Sleep(late)
		if err == nil {
			l.mu.Lock()
			l.asked = asked
			l.mu.Unlock()
		}
		return err
	}
}

// hold ends with the test at the latest, before the cleanups of what began earlier: they may wait for a call that is held.
func (l *line) hold(t testing.TB) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = make(chan struct{})
	t.Cleanup(l.release)
}

func (l *line) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held != nil {
		close(l.held)
		l.held = nil
	}
}

func (l *line) delay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = d
}

func (l *line) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

func (l *line) lastAsked() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}
