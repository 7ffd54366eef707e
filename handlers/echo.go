package handlers

import (
	"context"
	"encoding/json"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/task"
)

// Echo returns a handler that logs each task at info, with its payload: as JSON if it is JSON, else as text. It accepts
// every payload. It shows *** for values marked as secret. A payload holds more than those, so use it only to try things out.
func Echo(log zerolog.Logger) TaskHandler {
	return Func(func(_ context.Context, t *task.Task) error {
		e := log.Info()
		if e == nil {
			return nil
		}
		e = e.Str("task", t.ID)
		if t.Schedule != "" {
			e = e.Str("schedule", t.Schedule)
		}
		if at := slotOf(t); !at.IsZero() {
			e = e.Str("slot", formatSlot(at))
		}
		e = e.Int("attempt", t.Attempt)
		switch payload := secret.Mask(t.Payload, t.Secret); {
		case len(payload) == 0:
		case json.Valid(payload):
			e = e.RawJSON("payload", payload)
		default:
			e = e.Str("payload", string(payload))
		}
		e.Msg("echo")
		return nil
	})
}
