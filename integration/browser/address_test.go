package browser

import (
	"testing"
	"time"
)

// Somebody who has followed a link to an address that no page makes sees what is wrong, or the page without it.
func TestAddress_thatNoPageMakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head, "  - {name: reports-of-the-warehouse-in-the-north-west, every: 1s, task: echo}\n")
	b := w.browse()
	b.allow(`status of 404 .*%25FF`)
	b.open("/tasks/%FF")
	b.shows("#task", "There is no task with this ID")
	b.open("/schedules/%FF")
	b.shows("#schedule", "There is no schedule with this name")
	for _, view := range []string{"zoom=constructor", "zoom=1e300", "zoom=-60", "to=%2B275760-09-12", "to=-271821-04-21"} {
		b.open("/beat?" + view)
		b.shows("#names", "reports-of-the")
		if b.has(".state") {
			t.Errorf("%s: %s", view, b.text(".state"))
		}
	}

	// A pattern of many stars matches nothing at once.
	for _, page := range []string{"/schedules", "/beat"} {
		began := time.Now()
		b.open(page + "?match=" + "************!")
		b.waits(`document.readyState === 'complete'`)
		if took := time.Since(began); took > patience {
			t.Errorf("%s: %v", page, took)
		}
	}
	b.open("/schedules?match=*OF*?warehouse*st")
	b.shows("#list", "reports-of-the-warehouse-in-the-north-west")
}
