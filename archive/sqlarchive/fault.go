package sqlarchive

import (
	"context"
	"errors"
	"strings"

	"github.com/onbeat/onbeat/archive"
)

// fault is an error of the database, on one line and without the password.
type fault struct {
	text  string
	kind  error // nil: none of those that callers tell apart
	cause error
}

func (f *fault) Error() string { return f.text }

// Unwrap returns the kind of error, and what the database said.
func (f *fault) Unwrap() []error {
	if f.kind == nil {
		return []error{f.cause}
	}
	return []error{f.kind, f.cause}
}

// fault turns an error of the database into one for callers. The context is the caller's own.
func (a *store) fault(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, archive.ErrMoved):
		return err
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return context.Cause(ctx)
	}
	var kind error
	var hint string
	if errors.Is(err, context.DeadlineExceeded) {
		kind = archive.ErrUnavailable
	} else {
		hint, kind = a.engine.kind(err)
	}
	said := a.where.Hide(strings.Join(strings.Fields(err.Error()), " "))
	if kind != nil {
		said = kind.Error() + ": " + said
	}
	if hint != "" {
		said += " (" + hint + ")"
	}
	return &fault{text: said, kind: kind, cause: err}
}
