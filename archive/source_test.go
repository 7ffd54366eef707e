package archive_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/archive/sqlarchive"
	"github.com/onbeat/onbeat/internal/field"
)

// This program, which is that of the tests, has SQLite alone: see the example.
func TestSource_refusesADatabaseThatTheProgramDoesNotImport(t *testing.T) {
	t.Parallel()
	_, err := archive.NewSource(sqlarchive.Config{URL: "postgres://db/shop"}, "test", zerolog.Nop())
	if f := field.Of(err); f == nil || f.Field != "archive.url" || !strings.Contains(f.Hint, `"github.com/onbeat/onbeat/postgres"`) {
		t.Errorf("%v", err)
	}
}

// opener counts how often it opens an archive that knows nothing.
type opener struct {
	invalid, away error
	opened        atomic.Int64
	closed        atomic.Int64
}

func (o *opener) Validate() error { return o.invalid }
func (o *opener) String() string  { return "sqlite://somewhere" }

func (o *opener) Open(_ context.Context, namespace string, _ zerolog.Logger) (archive.Archive, error) {
	if o.away != nil {
		return nil, o.away
	}
	o.opened.Add(1)
	return &empty{o: o, namespace: namespace}, nil
}

type empty struct {
	archive.Archive
	o         *opener
	namespace string
}

func (e *empty) Close() error {
	e.o.closed.Add(1)
	return nil
}

func TestSource_opensWhenItIsFirstUsed(t *testing.T) {
	t.Parallel()
	o := &opener{away: archive.ErrUnavailable}
	s, err := archive.NewSource(o, "demo", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Archive(t.Context()); !errors.Is(err, archive.ErrUnavailable) || !strings.Contains(err.Error(), "sqlite://somewhere") {
		t.Errorf("away: %v", err)
	}
	o.away = nil
	for range 2 {
		a, err := s.Archive(t.Context())
		if err != nil || a.(*empty).namespace != "demo" {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if o.opened.Load() != 1 {
		t.Errorf("opened %d times", o.opened.Load())
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil || o.closed.Load() != 1 {
		t.Errorf("closed %d times, %v", o.closed.Load(), err)
	}
	if a, err := s.Archive(t.Context()); a != nil || err == nil {
		t.Errorf("after Close: %v, %v", a, err)
	}
}

func TestSource_refusesWhatItsOpenerRefuses(t *testing.T) {
	t.Parallel()
	invalid := errors.New("invalid")
	if _, err := archive.NewSource(&opener{invalid: invalid}, "demo", zerolog.Nop()); !errors.Is(err, invalid) {
		t.Error(err)
	}
}
