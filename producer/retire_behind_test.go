package producer

import (
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/schedule"
)

// When a schedule is retired, the slots that it is behind with are given up, so it has runs left when it comes back. Each slot
// is noted once: when the schedule was retired, or when it came back.
func TestRetire_whatItIsBehindWithIsNoRunThatItHad(t *testing.T) {
	t.Parallel()
	zero := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	sec := func(n int) time.Time { return zero.Add(time.Duration(n) * time.Second) }
	s := &Schedule{Name: "s", Rule: schedule.Every(time.Second), Task: "job"}
	s.MaxRuns = 5
	d := definition{definitionHead: definitionHead{V: definitionVersion, Origin: Declared, Release: "v1"}, Schedule: *s}
	text, err := d.encode()
	must(t, err)
	last := queue.Last{Rev: 1, Slot: sec(4), Runs: 2, Anchor: zero}
	st := queue.Stored{Name: "s", Definition: text, Last: last.String()}
	st.Behind = queue.Behind{{From: sec(2).Add(-time.Millisecond), To: sec(4)}}.String()

	c, err := retire(st, "v2", sec(10))
	must(t, err)
	if !c.Retire || !c.Settled.Equal(sec(10)) || c.Behind != st.Behind || c.Remains != "" {
		t.Fatalf("%+v", c)
	}
	last.Slot = c.Settled
	r := queue.Retired{Name: "s", At: sec(10), By: "v2", Definition: text, Last: last.String()}
	made, err := replace(queue.Stored{Name: "s"}, s, d.definitionHead, sec(20))
	must(t, err)
	back, err := comeBack(r, made, s, sec(20))
	must(t, err)
	if back.Runs != 2 || !back.Settled.Equal(sec(20)) {
		t.Errorf("%+v", back)
	}
	var got []string
	for _, line := range strings.Split(history.Join(c.Note, back.Note), "\n") {
		if f := strings.Fields(line); f[1] != "was" {
			got = append(got, f[1]+" "+f[2])
		}
	}
	if want := "retired 3, retired 6, retired 10"; strings.Join(got, ", ") != want {
		t.Errorf("noted %q, want %q", got, want)
	}
}
