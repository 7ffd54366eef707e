package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// suspectFor is how long the claims of a primary are held back after it lost a replica. In a planned failover, Sentinel tells
// the old primary about the new one 1 to 2 s after the new one has left it (measured with 7.0). Claims are held back once in
// suspectRest at most, so that a replica which comes and goes does not hold up the beat.
const (
	suspectFor  = 3 * time.Second
	suspectRest = 30 * time.Second
)

// suspicion finds a primary that goes on answering though it may not be the primary any more. A failover begins when one
// replica leaves its primary. The old primary sees that at once, long before a sentinel tells it. The new primary will
// give away again each claim that the old one gives from then on. So for a moment the caller begins no such claim. If the
// server is still the primary after that, it only lost a replica, and the claims begin then.
type suspicion struct {
	mu        sync.Mutex
	primaries map[string]*suspect // by replication ID: a replica that is promoted takes another
	blind     time.Time           // do not ask before: the last reply did not tell the replicas
}

// suspect is one primary.
type suspect struct {
	most  int       // replicas that it had
	since time.Time // when a replica was found to be gone; zero: none is gone
	last  time.Time // the last such moment
	heard time.Time // when the primary last told its replicas
}

// mostPrimaries is how many primaries are remembered.
const mostPrimaries = 8

func (s *suspicion) looks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !time.Now().Before(s.blind)
}

// look reads what the primary says of its replicas. It returns [ErrSuspect] while no claim of this primary may begin.
func (s *suspicion) look(info *redis.StringCmd) error {
	text, err := info.Result()
	var refused redis.Error
	if err != nil && !errors.As(err, &refused) {
		return err // the connection was lost: the replicas are unknown
	}
	of, n, ok := replicas(text)
	return s.heard(of, n, ok, time.Now())
}

func (s *suspicion) heard(of string, n int, ok bool, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !ok { // the user may not ask, or the reply says nothing of replicas
		s.blind = now.Add(time.Minute)
		return nil
	}
	p := s.of(of, n)
	p.heard = now
	switch {
	case n >= p.most:
		p.most, p.since = n, time.Time{}
	case p.since.IsZero() && !p.last.IsZero() && now.Sub(p.last) < suspectFor:
		p.since = p.last // an older reply, which arrived later, still had the replica
	case p.since.IsZero() && !p.last.IsZero() && now.Sub(p.last) < suspectRest:
		p.most = n
	case p.since.IsZero():
		p.since, p.last = now, now
	case now.Sub(p.since) >= suspectFor:
		p.most, p.since = n, time.Time{}
	}
	if p.since.IsZero() {
		return nil
	}
	return fmt.Errorf("%w: it has %d of its %d replicas", ErrSuspect, n, p.most)
}

// of returns what is known of a primary. If there are too many, it forgets the one that was not heard of for longest.
func (s *suspicion) of(id string, n int) *suspect {
	if p := s.primaries[id]; p != nil {
		return p
	}
	if s.primaries == nil {
		s.primaries = map[string]*suspect{}
	}
	if len(s.primaries) == mostPrimaries {
		oldest := ""
		for id, p := range s.primaries {
			if oldest == "" || p.heard.Before(s.primaries[oldest].heard) {
				oldest = id
			}
		}
		delete(s.primaries, oldest)
	}
	s.primaries[id] = &suspect{most: n}
	return s.primaries[id]
}

// replicas reads INFO replication: the replication ID of the primary, and how many replicas follow it. It does not count a
// program that only takes a copy, as for a backup, because it cannot be promoted. Such a program is never online, or has no
// port.
func replicas(info string) (of string, n int, ok bool) {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "master_replid":
			of = value
		case name == "connected_slaves":
			ok = true
		case strings.HasPrefix(name, "slave") && strings.Contains(value, "state=online") && !strings.Contains(value, ",port=0,"):
			n++
		}
	}
	return of, n, ok && of != ""
}

// bySentinel reports whether a client asks sentinels who the primary is.
func bySentinel(rdb redis.UniversalClient) bool {
	c, ok := rdb.(*redis.Client)
	return ok && c.Options().Addr == "FailoverClient" // the name that go-redis gives it
}
