package task_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/onbeat/onbeat/task"
)

func TestNewID_isTwentyLettersAndDigits(t *testing.T) {
	t.Parallel()
	for _, now := range []time.Time{ms(0), ms(1700000000000), ms(253402300799999 / 2)} {
		id := task.NewID(now)
		if len(id) != 20 || strings.Trim(id, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("NewID(%s) = %q", now, id)
		}
		if err := task.CheckID("id", id); err != nil {
			t.Error(err)
		}
	}
}

func TestNewID_sortsByTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		at := rapid.Int64Range(0, 200_000_000_000_000)
		a, b := at.Draw(r, "a"), at.Draw(r, "b")
		if a == b {
			return
		}
		if x, y := task.NewID(ms(a)), task.NewID(ms(b)); (a < b) != (x < y) {
			r.Fatalf("%d -> %s, %d -> %s", a, x, b, y)
		}
	})
}

func TestNewID_isUniqueWithinOneMillisecond(t *testing.T) {
	t.Parallel()
	const workers, each = 8, 5000
	ids, now := make([]string, workers*each), time.Now()
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				ids[w*each+i] = task.NewID(now)
			}
		})
	}
	wg.Wait()
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n != workers*each {
		t.Fatalf("%d distinct IDs of %d", n, workers*each)
	}
}

func TestSlotID_roundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.StringMatching(`[a-zA-Z0-9][a-zA-Z0-9\-_.:/+]{0,127}`).Draw(r, "name")
		slot := ms(rapid.Int64Range(0, 253402300799999).Draw(r, "slot"))
		id := task.SlotID(name, slot)
		gotName, gotSlot, ok := task.ParseSlotID(id)
		if !ok || gotName != name || !gotSlot.Equal(slot) || gotSlot.Location() != time.UTC {
			r.Fatalf("ParseSlotID(%q) = %q, %s, %t", id, gotName, gotSlot, ok)
		}
	})
}

func TestSlotID_isTheSameInEveryZone(t *testing.T) {
	t.Parallel()
	slot := ms(1700000000123)
	if got, want := task.SlotID("a", slot.In(time.FixedZone("", 9*3600))), "a@1700000000123"; got != want {
		t.Fatalf("SlotID = %q, want %q", got, want)
	}
}

func TestParseSlotID_refusesAnythingElse(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "@", "@5", "a@", "a", "a@x", "a@5x", "a@+5", "a@05", "a@ 5", "a b@5", "a@b@5", "a@99999999999999999999",
		task.NewID(time.Now())} {
		if name, slot, ok := task.ParseSlotID(id); ok || name != "" || !slot.IsZero() {
			t.Errorf("ParseSlotID(%q) = %q, %s, %t", id, name, slot, ok)
		}
	}
}
