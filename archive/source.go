package archive

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// openTime is how long opening may take. Migrations of a large database are part of it.
const openTime = 5 * time.Minute

// Source opens an archive when it is first used, and again if that failed: a database that is away keeps nothing else from
// starting. It is safe for concurrent use.
type Source struct {
	opener    Opener
	namespace string
	log       zerolog.Logger
	turn      chan struct{} // held by the one who opens

	mu     sync.Mutex
	opened Archive // nil: not yet
	closed bool
}

// NewSource returns the source of the archive of a namespace. It refuses an invalid opener, and does not connect yet.
func NewSource(o Opener, namespace string, log zerolog.Logger) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Source{opener: o, namespace: namespace, log: log, turn: make(chan struct{}, 1)}, nil
}

// Archive returns the archive, and opens it if it is not open. The caller does not close it: [Source.Close] does.
func (s *Source) Archive(ctx context.Context) (Archive, error) {
	if a, err := s.now(); a != nil || err != nil {
		return a, err
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("open the archive: %w", context.Cause(ctx))
	}
	if a, err := s.now(); a != nil || err != nil {
		return a, err
	}
	ctx, done := context.WithTimeout(ctx, openTime)
	defer done()
	a, err := s.opener.Open(ctx, s.namespace, s.log)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.opener, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = a.Close()
		return nil, errClosed
	}
	s.opened = a
	return a, nil
}

var errClosed = fmt.Errorf("the archive was closed")

func (s *Source) now() (Archive, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	return s.opened, nil
}

// Close closes the archive if it is open. After that [Source.Archive] returns an error.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.opened
	s.opened, s.closed = nil, true
	if a == nil {
		return nil
	}
	return a.Close()
}
