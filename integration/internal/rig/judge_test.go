package rig

import (
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/trial"
)

// A judge that never finds a fault proves nothing. So the test shows it each fault that it should find.
func TestJudge_countsEachKindOfFault(t *testing.T) {
	t.Parallel()
	const every = 100 * time.Millisecond
	anchor := time.UnixMilli(1_000_000)
	at := func(slot time.Duration, attempt int, fence int64) trial.Arrival {
		return trial.Arrival{Schedule: "a", Slot: anchor.Add(slot), At: anchor.Add(slot + time.Millisecond + time.Duration(attempt)), Attempt: attempt, Fence: fence}
	}
	for name, c := range map[string]struct {
		change func([]trial.Arrival) []trial.Arrival
		want   Figures
	}{
		"every slot once":             {func(l []trial.Arrival) []trial.Arrival { return l }, Figures{Slots: 10}},
		"one missed":                  {func(l []trial.Arrival) []trial.Arrival { return slices.Delete(l, 4, 5) }, Figures{Slots: 9, Missed: 1}},
		"the last missed":             {func(l []trial.Arrival) []trial.Arrival { return l[:9] }, Figures{Slots: 9, Missed: 1}},
		"one twice":                   {func(l []trial.Arrival) []trial.Arrival { return append(l, l[4]) }, Figures{Slots: 10, Duplicated: 1}},
		"one repeated":                {func(l []trial.Arrival) []trial.Arrival { return append(l, at(4*every, 2, 9)) }, Figures{Slots: 10, Repeated: 1}},
		"repeated under an old fence": {func(l []trial.Arrival) []trial.Arrival { return append(l, at(4*every, 2, 1)) }, Figures{Slots: 10, Duplicated: 1}},
		"as the same attempt":         {func(l []trial.Arrival) []trial.Arrival { return append(l, at(4*every, 1, 9)) }, Figures{Slots: 10, Duplicated: 1}},
		"one off the grid":            {func(l []trial.Arrival) []trial.Arrival { return append(l, at(every/2, 1, 1)) }, Figures{Slots: 11, OffGrid: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var list []trial.Arrival
			for i := range 10 {
				list = append(list, at(time.Duration(i)*every, 1, 1))
			}
			w := &World{T: t, Rec: &trial.Recorder{}}
			w.Rec.Note(c.change(list)...)
			got := w.Judge(every, anchor.Add(9*every), "a")
			if got.Worst == 0 || got.Gap < every || got.Gap > 2*every {
				t.Errorf("worst lag %s, longest gap %s", got.Worst, got.Gap)
			}
			got.Gap, got.P50, got.P99, got.Worst = 0, 0, 0, 0
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
