package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// suspectFor is how long claims are held back on a primary that lost a replica. In a planned failover of Sentinel the old
// primary is told that it is none any more 1 to 2 s after the new one has left it (measured with 7.0). They are held back once
// in suspectRest at most: a replica that comes and goes does not hold up the beat.
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
	blind     time.Time           // until when the user may not ask, as far as is known
}

// suspect is one primary.
type suspect struct {
	most  int       // replicas that it had
	since time.Time // when one was found to be gone; zero: none is
	last  time.Time // the same, of the last time
	heard time.Time
}

// mostPrimaries is how many are remembered.
const mostPrimaries = 8

func (s *suspicion) looks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !time.Now().Before(s.blind)
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
	if !ok { // it may not be asked, or says nothing of the kind
		s.blind = now.Add(time.Minute)
		return nil
	}
	p := s.of(of, n)
	p.heard = now
	switch {
	case n >= p.most:
		p.most, p.since = n, time.Time{}
	case p.since.IsZero() && !p.last.IsZero() && now.Sub(p.last) < suspectFor:
		p.since = p.last // an older answer, which came later, had seen the replica
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

// of is what is known of a primary. Of too many the one that was heard of least lately is forgotten.
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

// replicas reads INFO replication: whose history a primary goes on with, and how many replicas follow it. One that only takes
// a copy, as for a backup, is never online, or has no port: it cannot be promoted.
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
	return ok && c.Options().Addr == "FailoverClient" // as go-redis has it
}
