package browser

import (
	"testing"
	"time"
)

func TestBeat_showsEachSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head, w.Beat("a", 200*time.Millisecond), w.Beat("b", time.Second))
	b := w.browse()
	b.open("/beat?view=table")
	b.shows("#table", "a")
}
