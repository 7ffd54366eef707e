package producer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// The notes of the leader and the later entries of the history make one truth, for each process and across leaders.
func TestHealth_isTheSameHoweverMuchIsNoted(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		w.apply("s", schedule.Every(time.Hour))
		w.apply("other", schedule.Every(time.Hour))
		now := w.now().Truncate(time.Millisecond).Add(time.Minute) // later than what the world itself notes meanwhile
		lines := []string{
			"s@1000 done 1 1000", "s@2000 failed 1 2000", "s@2000 dead 2 2100", "s@3000 skipped overlap", "s@3100 skipped taken", "s@4000..8000 missed 5 outage",
			"other@1000 dead 1 1000", "mail done 1 1000", "s!x failed 1 9000", "s@9000 lost 1 9000",
		}
		term := w.lead("a", "v1", nil).term
		for i := range lines {
			if i%4 == 2 {
				_, _, err := w.noteHealth(t.Context(), term, nil, &trends{}, deaf{})
				must(t, err)
			}
			w.note(now.Add(time.Duration(i)*time.Millisecond), lines[i])
			if i == 7 {
				term = w.lead("b", "v2", nil).term
			}
			got, _, err := w.Healths(t.Context(), []string{"s", "other", "none"})
			must(t, err)
			want := map[string]*Health{}
			for k, line := range lines[:i+1] {
				n := history.Parse(line)
				n.At = now.Add(time.Duration(k) * time.Millisecond)
				if name := subjectOf(&n); name != "" {
					addTo(want, name, &n)
				}
			}
			if fmt.Sprint(values(got)) != fmt.Sprint(values(want)) {
				t.Fatalf("after %q\n got %v\nwant %v", lines[i], values(got), values(want))
			}
		}
		got, _, err := w.Healths(t.Context(), []string{"s"})
		must(t, err)
		if h := got["s"]; h.Dead != 1 || h.Skipped != 0 || h.Missed != 5 || h.Failed != 2 || h.Task != "s@9000" || h.Outcome != history.Dead {
			t.Errorf("%+v", h)
		}
		must(t, w.Delete(t.Context(), "s"))
		w.note(now.Add(time.Second), "s@9000 done 2 9000") // a run that ends after that
		_, _, err = w.noteHealth(t.Context(), term, nil, &trends{}, deaf{})
		must(t, err)
		if left := rdb.HKeys(t.Context(), w.q.Keys().Health).Val(); slices.Contains(left, "s") {
			t.Errorf("a deleted schedule leaves %v", left)
		}
	})
}

func values(list map[string]*Health) map[string]Health {
	out := map[string]Health{}
	for name, h := range list {
		out[name] = *h
	}
	return out
}

// A slot that was pushed ahead and cancelled is settled, whatever else is noted before it comes.
func TestHealth_knowsASlotThatWasCancelledBeforeItCame(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1795338400000).UTC()
	slot := at.Add(5 * time.Second)
	for _, then := range []string{"done 1 1000", "failed 1 1000", "dead 3 1000", "lost 1 1000", "returned 1 1000", "cancelled 1 1000"} {
		var h Health
		for i, line := range []string{task.SlotID("s", slot) + " cancelled 0 0", "s!x " + then, task.SlotID("s", at.Add(-time.Minute)) + " " + then} {
			n := history.Parse(line)
			n.At = at.Add(time.Duration(i) * time.Second)
			if h.add(&n); !h.Noted.Equal(slot) {
				t.Errorf("after %q it knows up to %v, want %v", line, h.Noted, slot)
			}
		}
		n := history.Parse(task.SlotID("s", at) + " " + then)
		n.At = slot.Add(time.Second)
		if h.add(&n); !h.Noted.Equal(n.At) {
			t.Errorf("%s: it knows up to %v, want %v", then, h.Noted, n.At)
		}
	}
}

// A run that is cancelled, by hand or for a newer slot, mends nothing: a schedule that fails goes on failing until a run ends well.
func TestHealth_failsUntilARunEndsWell(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines string
		want  Health
	}{
		"dead, retried, and cancelled":   {"s@1000 dead 1 1000, s@1000 failed 1 1100, s@1000 cancelled 2 1200", Health{Outcome: history.Dead, Dead: 1, Failed: 1}},
		"dead, and a waiting one":        {"s@1000 dead 1 1000, s!x cancelled 0 0", Health{Outcome: history.Dead, Dead: 1}},
		"each attempt fails, and is cut": {"s@1000 failed 1 1, s@1000 cancelled 1 1, s@2000 failed 1 1, s@2000 cancelled 1 1, s@3000 failed 1 1", Health{Failed: 3}},
		"one ends well":                  {"s@1000 dead 1 1000, s@2000 cancelled 1 1, s@3000 done 1 1", Health{Outcome: history.Done}},
	} {
		var h Health
		for line := range strings.SplitSeq(c.lines, ", ") {
			n := history.Parse(line)
			h.add(&n)
		}
		if h.Outcome != c.want.Outcome || h.Dead != c.want.Dead || h.Failed != c.want.Failed {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

func TestHealth_isReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1795338400000).UTC()
	for _, h := range []Health{
		{}, {Success: at, Ended: at, Outcome: history.Done, Noted: at, Took: time.Second},
		{Dead: 3, Failed: 2, Skipped: 1, Missed: 9, Noted: at, Outcome: task.Outcome("dead"), Task: "a@1", Error: "no\troute to \"x\""},
	} {
		if got := parseHealth(h.encode()); got != h {
			t.Errorf("%+v became %+v", h, got)
		}
	}
	for _, bad := range []string{"", "x", "1 2 3\t\t", "1 2 3 4 5 6 7 8 -9 done\t\t"} {
		if got := parseHealth(bad); got != (Health{}) {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

// A leader that notes nothing is no reason to say that all is well.
func TestHealths_sayUpToWhenTheyKnow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Mini(t).Dialed(t))
	now := w.now().Truncate(time.Millisecond)
	lines := strings.TrimSuffix(strings.Repeat("s@1000 done 1 1000\n", healthBehind/2), "\n")
	for i := range 2 {
		w.note(now.Add(time.Duration(i)*time.Second), lines)
	}
	if _, upTo, err := w.Healths(t.Context(), []string{"s"}); err != nil || !upTo.IsZero() {
		t.Errorf("%v, %v", upTo, err)
	}
	w.note(now.Add(2*time.Second), "s@1000 dead 1 1000")
	if list, upTo, err := w.Healths(t.Context(), []string{"s"}); err != nil || !upTo.Equal(now.Add(time.Second)) || list["s"].Dead != 0 {
		t.Errorf("%v, %v", upTo, err)
	}
}

// deaf listens to no schedule.
type deaf struct{}

func (deaf) Listens(string) bool                          { return false }
func (deaf) Hear(context.Context, task.Term, []Run) error { return nil }
