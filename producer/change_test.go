package producer

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
)

func TestRemove_saysWhetherItWasDeletedOrRetired(t *testing.T) {
	t.Parallel()
	st, now := queue.Stored{Name: "a"}, time.Now()
	deleted, err := remove(st, history.Deleted, now)
	must(t, err)
	retired, err := retire(st, "v2", now)
	must(t, err)
	if deleted.Event != "schedule deleted" || deleted.Retire || retired.Event != "schedule retired" || !retired.Retire || retired.By != "v2" {
		t.Errorf("%+v, %+v", deleted, retired)
	}
}
