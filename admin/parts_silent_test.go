package admin

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat/task"
)

// A partition that hung is not asked for a while. One that answered soon, or whose caller went away, is asked again at once.
func TestSilent_spendsNoTimeOnOneThatHung(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away := fmt.Errorf("%w: no answer", task.ErrUnreachable)
		gone, leave := context.WithCancel(t.Context())
		leave()
		for what, note := range map[string]func(s *silent){
			"soon":      func(s *silent) { s.note(t.Context(), 1, away, slow-1) },
			"refused":   func(s *silent) { s.note(t.Context(), 1, task.ErrNotFound, partTime) },
			"gone away": func(s *silent) { s.note(gone, 1, away, partTime) },
			"another":   func(s *silent) { s.note(t.Context(), 2, away, partTime) },
		} {
			var s silent
			if note(&s); s.lately(1) != nil {
				t.Errorf("%s: not asked", what)
			}
		}
		var s silent
		s.note(t.Context(), 1, away, slow)
		time.Sleep(partTime)
		if err := s.lately(1); !errors.Is(err, task.ErrUnreachable) {
			t.Errorf("asked again by the same question: %v", err)
		}
		time.Sleep(silence)
		if err := s.lately(1); err != nil {
			t.Errorf("never asked again: %v", err)
		}
	})
}
