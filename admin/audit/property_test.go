package audit

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/onbeat/onbeat/internal/history"
)

// world is a simulated history of one schedule, with what an audit of it must say.
type world struct {
	t     *rapid.T
	notes []history.Note
	due   map[int64]bool // slots whose tasks stand
	want  map[Verdict]int64
}

func (w *world) draw(n int, what string) int { return rapid.IntRange(0, n-1).Draw(w.t, what) }

// run appends the note of one run and returns when it ended.
func (w *world) run(slot time.Time, word history.Word, attempt int, claimed time.Time) time.Time {
	ended := claimed.Add(time.Duration(w.draw(800, "takes")) * time.Millisecond)
	w.notes = append(w.notes, history.Note{
		Schedule: "beat", Slot: slot, Word: word, Attempt: attempt, Claimed: claimed, At: ended,
	})
	return ended
}

// live lets one slot live, and returns its verdict.
func (w *world) live(slot time.Time) Verdict {
	verdict := OnTime
	lag := w.draw(1000, "lag")
	if w.draw(4, "late?") == 0 {
		lag += 1001
		verdict = Late
	}
	claimed := slot.Add(time.Duration(lag) * time.Millisecond)
	attempt := 1
	for range w.draw(3, "troubles") {
		word := []history.Word{history.Failed, history.Lost, history.Returned}[w.draw(3, "trouble")]
		claimed = w.run(slot, word, attempt, claimed).Add(time.Duration(w.draw(3000, "pause")) * time.Millisecond)
		if word != "returned" {
			attempt++
		}
	}
	switch w.draw(12, "end") {
	case 0:
		w.run(slot, "dead", attempt, claimed)
		return Failed
	case 1:
		w.run(slot, "cancelled", attempt, claimed)
		return Cancelled
	case 2: // due or running
		w.due[slot.UnixMilli()] = true
		return Pending
	case 3:
		ended := w.run(slot, "done", attempt, claimed)
		w.run(slot, "done", attempt, ended)
		return Duplicated
	}
	w.run(slot, "done", attempt, claimed)
	return verdict
}

// note appends a note of a slot that did not run.
func (w *world) note(slot time.Time, word history.Word, why string) {
	w.notes = append(w.notes, history.Note{
		Schedule: "beat", Slot: slot, Word: word, Why: why, At: slot.Add(time.Duration(w.draw(9000, "noted")) * time.Millisecond),
	})
}

// slot gives one slot a fate.
func (w *world) slot(slot time.Time) Verdict {
	switch w.draw(10, "fate") {
	case 0:
		w.note(slot, "skipped", "overlap")
		return Skipped
	case 1:
		w.note(slot, "missed", "outage")
		return Missed
	case 2:
		return Lost // nothing says anything
	case 3:
		w.run(slot, "done", 1, slot.Add(-time.Duration(1+w.draw(500, "early"))*time.Millisecond))
		return Early
	}
	return w.live(slot)
}

func TestJudge_isRightOnRandomHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, due: map[int64]bool{}, want: map[Verdict]int64{}}
		n := rapid.IntRange(1, 40).Draw(t, "slots")
		span := []time.Duration{50 * time.Millisecond, time.Second, time.Minute}[w.draw(3, "every")]
		for k := 0; k < n; k++ {
			slot := t0.Add(time.Duration(k) * span)
			if ahead := n - k; w.draw(8, "range?") == 0 {
				length := 1 + w.draw(min(ahead, 5), "length")
				last := slot.Add(time.Duration(length-1) * span)
				fate := w.draw(3, "word")
				w.notes = append(w.notes, history.Note{
					Schedule: "beat", From: slot, To: last, Word: []history.Word{"missed", "paused", "changed"}[fate],
					Count: int64(length), At: last.Add(time.Second),
				})
				w.want[[]Verdict{Missed, Paused, Changed}[fate]] += int64(length)
				k += length - 1
				continue
			}
			w.want[w.slot(slot)]++
		}
		for range w.draw(3, "strays") {
			stray := t0.Add(time.Duration(w.draw(n, "stray"))*span + time.Millisecond)
			if stray.Before(t0.Add(time.Duration(n) * span)) {
				w.run(stray, "done", 1, stray)
				w.want[OffGrid]++
			}
		}
		slices.SortStableFunc(w.notes, func(a, b history.Note) int { return a.At.Compare(b.At) })
		// Some of the history is written while what stands is being looked at.
		cut := len(w.notes) - w.draw(min(len(w.notes), 5)+1, "later")
		end := t0.Add(time.Duration(n-1)*span + time.Millisecond)

		r := judge(question{
			input: input{
				Schedule: "beat", Periods: []period{every(t, span, t0)}, From: t0, To: end, Settled: end,
				Grace: time.Nanosecond,
			},
			notes: slices.Values(w.notes[:cut]), later: w.notes[cut:],
			stands: func(slot time.Time) bool {
				return w.due[slot.UnixMilli()] || slices.ContainsFunc(w.notes[cut:], func(n history.Note) bool { return n.Slot.Equal(slot) })
			},
		})
		if !maps.Equal(r.Counts, w.want) {
			t.Fatalf("counts = %v, want %v", r.Counts, w.want)
		}
		if r.Slots != int64(n) {
			t.Fatalf("%d slots, want %d", r.Slots, n)
		}
	})
}
