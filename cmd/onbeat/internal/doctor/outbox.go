package doctor

import (
	"context"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/outbox"
)

// slowOutbox is how long a row may wait before something is wrong: movers look each second, and try again after 15 at most.
const slowOutbox = time.Minute

// outbox looks into the table of the outbox, if there is one.
func (d *doctor) outbox(ctx context.Context) {
	if d.cfg.Outbox == nil {
		return
	}
	s, err := outbox.Look(ctx, d.cfg.Outbox, d.cfg.Namespace)
	switch {
	case err != nil:
		d.fail("outbox", "is its database there, and has the table? an instance makes it when it starts", "%s: %s", d.cfg.Outbox, strings.Join(strings.Fields(err.Error()), " ")) // a driver may write several lines
	case s.Refused > 0:
		d.warn("outbox", "docs/outbox.md says how to try them again", "%d tasks were refused, the last one: %s; %d wait", s.Refused, s.Why, s.Waiting)
	case s.Oldest > slowOutbox:
		d.warn("outbox", "does an instance run whose config names this outbox? look at its log", "%d tasks wait, the oldest for %s", s.Waiting, wording.Span(s.Oldest))
	default:
		d.ok("outbox", "%d tasks wait in %s", s.Waiting, d.cfg.Outbox)
	}
}
