package instance

import (
	"context"
	"errors"
	"fmt"

	"github.com/onbeat/onbeat/task"
)

// ErrNoOther: no other instance is ready and could lead, so this one cannot resign. Nothing has changed.
var ErrNoOther = errors.New("no other instance is ready to lead")

// AskToResign makes an instance give up the lead, for a person named by. If it led, another instance leads when AskToResign
// returns. It stays ready and takes work as before, also when it comes back after a lost lease. It leads again only when no
// other instance that was not asked can lead, when its release is promoted and has no other candidate, or in a new process.
//
// AskToResign returns [task.ErrNotFound] if no such instance is registered, or [ErrNoOther]. To ask again changes nothing.
func (r *Registry) AskToResign(ctx context.Context, id, by string) (View, error) {
	return r.ask(ctx, "resign", id, by)
}

// AskToDrain makes an instance take no more work, for a person named by, and leave as if its process had got SIGTERM: it
// finishes its runs, deregisters, and [Manager.Run] returns nil. It claims nothing from the moment AskToDrain returns; it may
// leave long after. The last instance may be asked too.
//
// AskToDrain returns [task.ErrNotFound] if no such instance is registered. To ask again changes nothing.
func (r *Registry) AskToDrain(ctx context.Context, id, by string) (View, error) {
	return r.ask(ctx, "drain", id, by)
}

func (r *Registry) ask(ctx context.Context, what, id, by string) (View, error) {
	values, err := r.run(ctx, askScript, r.first(), id, what, by)
	if err == nil {
		err = map[string]error{"unknown": task.ErrNotFound, "alone": ErrNoOther}[values.Text(0)]
	}
	if err != nil {
		return View{}, fmt.Errorf("ask instance %s to %s: %w", id, what, err)
	}
	return viewOf(values[min(1, len(values)):]), nil
}

// obey ends Run, as SIGTERM does, if Redis says that this instance drains: a person has asked it to.
func (m *Manager) obey(ctx context.Context, v View) {
	if v.State != states["d"] || ctx.Err() != nil {
		return
	}
	m.log.Info().Msg("asked to drain: this instance finishes its runs and leaves")
	m.stop()
}
