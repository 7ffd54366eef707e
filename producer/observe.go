package producer

import "github.com/onbeat/onbeat/internal/queue"

// Observer learns of the work of a leader. Its method must not block.
type Observer interface {
	// Pushed is called with the number of slots that a call pushed. The call may return after the term that sent it has ended.
	Pushed(slots int)
}

// observe tells the observer how many slots a call pushed. Moved are the indexes of the steps that were left out.
func (t *term) observe(steps []queue.Step, moved []int) {
	if t.cfg.Observer == nil {
		return
	}
	slots := 0
	for i := range steps {
		slots += len(steps[i].Push)
	}
	for _, i := range moved {
		slots -= len(steps[i].Push)
	}
	if slots > 0 {
		t.cfg.Observer.Pushed(slots)
	}
}
