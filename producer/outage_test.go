package producer

import (
	"errors"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

func TestSweep(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		missed schedule.Missed
		last   float64 // pushed up to here
		began  float64
		want   string
	}{
		{"once: an outage within the horizon keeps the newest", "", 10, 7.5, "6 5 4 3 2 1 0"},
		{"once: exactly on a slot", "", 10, 7, "6 5 4 3 2 1 0"},
		{"once: beyond the horizon the newest is yet to be pushed", "", 10, 12, "10 9 8 7 6 5 4 3 2 1 0"},
		{"skip: all that were missed", schedule.MissedSkip, 10, 7.5, "7 6 5 4 3 2 1 0"},
		{"all: none", schedule.MissedAll, 10, 7.5, ""},
		{"no further back than the window", schedule.MissedSkip, 40, 38.5, "38 37 36 35 34 33 32 31 30 29 28 27 26 25 24 23 22 21 20"},
		{"before the first slot", "", 10, -1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := entryOf(t, Schedule{Rule: schedule.Rule{Every: time.Second, Missed: tt.missed}}, lastSlot(tt.last))
			var got []time.Time
			for _, d := range e.sweep(sec(tt.began), 20*time.Second) {
				got = append(got, d.Due)
				if d.ID != task.SlotID("s", d.Due) {
					t.Errorf("%+v", d)
				}
			}
			if s := seconds(got); s != tt.want {
				t.Errorf("drops %q, want %q", s, tt.want)
			}
		})
	}
	if drops := entryOf(t, every(time.Second)).sweep(sec(5), time.Minute); drops != nil {
		t.Errorf("nothing was pushed, and %v are dropped", drops)
	}
}

// Slots that had been pushed ahead and stay run behind those on time, if runs may not overlap.
func TestSweep_whatStaysIsBehind(t *testing.T) {
	t.Parallel()
	for missed, want := range map[schedule.Missed]string{schedule.MissedAll: "3 2 1 0", schedule.MissedOnce: "3", schedule.MissedSkip: ""} {
		rule := schedule.Rule{Every: time.Second, Missed: missed, Overlap: schedule.OverlapSkip}
		var behind, gone []time.Time
		for _, d := range entryOf(t, Schedule{Rule: rule}, lastSlot(10)).sweep(sec(3.5), 20*time.Second) {
			if d.Behind {
				behind = append(behind, d.Due)
			} else {
				gone = append(gone, d.Due)
			}
		}
		if s := seconds(behind); s != want || len(behind)+len(gone) != 4 {
			t.Errorf("%s: %q are behind, %q gone; want %q behind", missed, s, seconds(gone), want)
		}
	}
}

// TestFull: at maxmemory slots wait, and come; and the gate opens, because only work that leaves makes room.
func TestFull(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t, "--maxmemory-policy", "noeviction")
	w := worldIn(t, srv.Client(), "full")
	ctx := t.Context()
	w.apply("s", schedule.Every(50*time.Millisecond))
	if _, err := w.p.Enqueue(ctx, task.New("job", nil, task.ID("waits"))); err != nil {
		t.Fatal(err)
	}
	must(t, w.rdb.ConfigSet(ctx, "maxmemory", "1").Err())
	if _, err := w.p.Enqueue(ctx, task.New("job", nil)); !errors.Is(err, task.ErrFull) {
		t.Fatalf("enqueue: %v", err)
	}
	n := w.start("v1", declare("new"))
	w.leads(n) // it waits for the gate
	if got := len(w.pushed("s")); got != 0 {
		t.Fatalf("%d slots were pushed into a full Redis", got)
	}
	must(t, w.rdb.ConfigSet(ctx, "maxmemory", "0").Err())
	testredis.Eventually(t, patience, func() bool { return len(w.pushed("s")) > 10 && len(w.pushed("new")) == 1 }, "slots come")
	n.stop()
	w.account("s")
}
