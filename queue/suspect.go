package queue

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// suspectFor is how long claims are held back on a primary that lost a replica. In a planned failover of Sentinel the old
// primary is told that it is none any more 1 to 2 s after the new one has left it (measured with 7.0).
const suspectFor = 3 * time.Second

// suspicion is about a primary that may be none any more, and goes on answering. A failover begins with one replica
// leaving its primary, which sees that at once, long before anybody tells it: what it gives away from then on, the new
// primary gives away once more. So for a moment nothing is begun of what it gives. If it is still the primary after that,
// it only lost a replica, and what was claimed there is begun then.
type suspicion struct {
	mu    sync.Mutex
	of    string    // its replication ID: a replica that is promoted takes another
	most  int       // replicas that it had
	since time.Time // when one was found to be gone; zero: none is
	blind bool      // the user may not ask
}

func (s *suspicion) looks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.blind
}

// look takes in what the primary said of its replicas, and returns [ErrSuspect] while what it gave is not to be begun.
func (s *suspicion) look(info *redis.StringCmd) error {
	text, err := info.Result()
	var refused redis.Error
	if err != nil && !errors.As(err, &refused) {
		return err // the connection was lost: nobody knows
	}
	of, n, ok := replicas(text)
	return s.heard(of, n, ok, time.Now())
}

func (s *suspicion) heard(of string, n int, ok bool, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !ok: // it may not be asked, or says nothing of the kind
		s.blind = true
		return nil
	case of != s.of:
		s.of, s.most, s.since = of, n, time.Time{}
	case n >= s.most:
		s.most, s.since = n, time.Time{}
	case s.since.IsZero():
		s.since = now
	case now.Sub(s.since) >= suspectFor:
		s.most, s.since = n, time.Time{}
	}
	if s.since.IsZero() {
		return nil
	}
	return fmt.Errorf("%w: it has %d of its %d replicas", ErrSuspect, n, s.most)
}

// replicas reads INFO replication: whose history a primary goes on with, and how many replicas follow it. One that only takes
// a copy, as for a backup, is never online.
func replicas(info string) (of string, n int, ok bool) {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "master_replid":
			of = value
		case name == "connected_slaves":
			ok = true
		case strings.HasPrefix(name, "slave") && strings.Contains(value, "state=online"):
			n++
		}
	}
	return of, n, ok && of != ""
}

// bySentinel reports whether a client asks sentinels who the primary is.
func bySentinel(rdb redis.UniversalClient) bool {
	c, ok := rdb.(*redis.Client)
	return ok && c.Options().Addr == "FailoverClient" // as go-redis has it
}
