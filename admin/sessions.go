package admin

import (
	"context"
	"time"
)

// Sessions are those of browsers that signed in by a token. All instances share them, so a session that ended on one has ended on all.
type Sessions interface {
	// BeginSession notes a session of the holder of a token. A holder has a thousand; the oldest leave first.
	BeginSession(ctx context.Context, holder, id string, end time.Time) error
	// HasSession reports whether a session is noted. It does not look at its end.
	HasSession(ctx context.Context, holder, id string) (bool, error)
	// EndSession forgets a session.
	EndSession(ctx context.Context, holder, id string) error
}
