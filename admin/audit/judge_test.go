package audit

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

// fataler is a test, of this package or of rapid.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// t0 is slot zero of most tests.
var t0 = time.UnixMilli(1_700_000_000_000).UTC()

func at(seconds float64) time.Time {
	return t0.Add(time.Duration(seconds * float64(time.Second))).Round(time.Millisecond)
}

// notes reads lines of the history, in which %d stands for t0 in seconds plus a number in braces: "beat@{3} done 1 {3.01}".
func notes(t *testing.T, lines ...string) []history.Note {
	t.Helper()
	list := make([]history.Note, 0, len(lines))
	for _, line := range lines {
		for {
			i := strings.IndexByte(line, '{')
			end := strings.IndexByte(line, '}')
			if i < 0 || end < i || line[i+1] == '"' {
				break
			}
			var s float64
			if _, err := fmt.Sscanf(line[i+1:end], "%g", &s); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			line = line[:i] + fmt.Sprint(at(s).UnixMilli()) + line[end+1:]
		}
		n := history.Parse(line)
		if n.Schedule != "" && n.Word == "" {
			t.Fatalf("%q: not a note", line)
		}
		list = append(list, n)
	}
	return list
}

func every(t fataler, d time.Duration, anchor time.Time) period {
	t.Helper()
	return periodOf(t, schedule.Rule{Every: d}, anchor)
}

func periodOf(t fataler, r schedule.Rule, anchor time.Time) period {
	t.Helper()
	p, err := newPeriod(r, anchor)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// question is what an auditor reads of one schedule.
type question struct {
	input
	notes  iter.Seq[history.Note]
	stands func(slot time.Time) bool // asked only of slots that no note settles
	later  []history.Note            // written after notes were read, until after stands was asked
}

// judge does what an auditor does with a ledger.
func judge(q question) Report {
	l := open(q.input)
	if q.notes != nil {
		for n := range q.notes {
			l.note(n)
		}
	}
	for slot := range l.unaccounted() {
		if q.stands != nil && q.stands(slot) {
			l.stands(slot)
		}
	}
	l.asked = true
	for _, n := range q.later {
		l.note(n)
	}
	return l.report()
}

// beats is an input of slots 0 to 9, one a second, all settled, long ago.
func beats(t testing.TB) question {
	return question{input: input{
		Schedule: "beat", Periods: []period{every(t, time.Second, t0)},
		From: t0, To: at(9.5), Settled: at(20), Grace: time.Millisecond,
	}}
}

// ranBut is a history in which every slot ran on time, but for those given.
func ranBut(slots ...int) []string {
	var lines []string
	for i := range 10 {
		if !slices.Contains(slots, i) {
			lines = append(lines, fmt.Sprintf("beat@{%d} done 1 {%d.002}", i, i))
		}
	}
	return lines
}

func TestJudge_givesEverySlotOneVerdict(t *testing.T) {
	t.Parallel()
	type counts = map[Verdict]int64
	for name, tt := range map[string]struct {
		lines  []string
		change func(*question)
		want   counts
		broken bool
	}{
		"all on time": {lines: ranBut(), want: counts{OnTime: 10}},
		"late": {
			lines: append(ranBut(3), "beat@{3} done 1 {4.001}"), want: counts{OnTime: 9, Late: 1},
		},
		"just within the tolerance": {
			lines: append(ranBut(3), "beat@{3} done 1 {4}"), want: counts{OnTime: 10},
		},
		"missed by policy": {
			lines: append(ranBut(3, 4, 5), "beat@{3}..{4} missed 2 policy once", "beat@{5} missed outage"),
			want:  counts{OnTime: 7, Missed: 3},
		},
		"skipped for overlap": {
			lines: append(ranBut(3), "beat@{3} skipped overlap"), want: counts{OnTime: 9, Skipped: 1},
		},
		"paused, and resumed": {
			lines: append(ranBut(3, 4), "beat@{3}..{4} paused 2 schedule was paused"),
			want:  counts{OnTime: 8, Paused: 2},
		},
		"paused still": {
			lines:  ranBut(8, 9),
			change: func(in *question) { in.Paused, in.Settled = true, at(7.3) },
			want:   counts{OnTime: 8, Paused: 2},
		},
		"came as the pause ended": {
			lines:  ranBut(4),
			change: func(in *question) { in.Resumed = []time.Time{at(4.001)} },
			want:   counts{OnTime: 9, Paused: 1},
		},
		"retired": {
			lines: append(ranBut(8, 9), "beat@{8}..{9} retired 2 schedule was retired"),
			want:  counts{OnTime: 8, Changed: 2},
		},
		"failed twice, then done": {
			lines: append(ranBut(3), "beat@{3} failed 1 {3}", "beat@{3} failed 2 {4}", "beat@{3} done 3 {6}"),
			want:  counts{OnTime: 10},
		},
		"lost with its instance, then done": {
			lines: append(ranBut(3), "beat@{3} lost 1 {3}", "beat@{3} done 2 {9}"), want: counts{OnTime: 10},
		},
		"handed back, then done: the attempt did not count": {
			lines: append(ranBut(3), "beat@{3} returned 1 {3}", "beat@{3} returned 1 {3.1}", "beat@{3} done 1 {3.2}"),
			want:  counts{OnTime: 10},
		},
		"failed for good": {
			lines: append(ranBut(3), "beat@{3} failed 1 {3}", "beat@{3} dead 2 {4}"),
			want:  counts{OnTime: 9, Failed: 1},
		},
		"cancelled, retried by hand, done": {
			lines: append(ranBut(3), "beat@{3} cancelled 1 {3}", "beat@{3} done 1 {8}"), want: counts{OnTime: 10},
		},
		"dead, retried by hand, done": {
			lines: append(ranBut(3), "beat@{3} dead 1 {3}", "beat@{3} done 1 {8}"), want: counts{OnTime: 10},
		},
		"dead, retried by hand, due": {
			lines:  append(ranBut(3), "beat@{3} dead 1 {3}"),
			change: func(in *question) { in.stands = func(time.Time) bool { return true } },
			want:   counts{OnTime: 9, Failed: 1}, // the dead stand too
		},
		"cancelled while it ran": {
			lines: append(ranBut(3), "beat@{3} cancelled 1 {3}"), want: counts{OnTime: 9, Cancelled: 1},
		},
		"cancelled while it was due": {
			lines: append(ranBut(3), "beat@{3} cancelled 0 0"), want: counts{OnTime: 9, Cancelled: 1},
		},
		"due or running": {
			lines:  append(ranBut(3, 4), "beat@{4} failed 1 {4}"),
			change: func(in *question) { in.stands = func(time.Time) bool { return true } },
			want:   counts{OnTime: 8, Pending: 2},
		},
		"nobody leads, so nobody has dealt with them": {
			lines: ranBut(7, 8, 9), change: func(in *question) { in.Settled = at(6) },
			want: counts{OnTime: 7, Pending: 3},
		},
		"missed, and still to be pushed": {
			lines: ranBut(2, 3, 4, 5), broken: true,
			change: func(in *question) { in.Behind = []producer.Span{{From: at(1), To: at(2)}, {From: at(3), To: at(5)}} },
			want:   counts{OnTime: 6, Pending: 3, Lost: 1},
		},
		"failed between the readings, and waits for its next attempt": {
			lines: ranBut(9),
			change: func(in *question) {
				in.later = notes(t, "beat@{9} failed 1 {9.004}")
				in.stands = func(time.Time) bool { return false } // its task was not found when asked for: the later note explains that
			},
			want: counts{OnTime: 9, Pending: 1},
		},
		"ended between the readings": {
			lines: ranBut(3),
			change: func(in *question) {
				in.later = notes(t, "beat@{3} done 1 {3.004}")
			},
			want: counts{OnTime: 10},
		},
		"within the grace": {
			lines: ranBut(9), change: func(in *question) { in.Grace = time.Second },
			want: counts{OnTime: 9, Pending: 1},
		},
		"before the history begins": {
			lines: ranBut(0, 1, 3), change: func(in *question) { in.Known = at(2) }, broken: true,
			want: counts{OnTime: 7, Unknown: 2, Lost: 1},
		},
		"all runs have been": {
			lines:  ranBut(6, 7, 8, 9),
			change: func(in *question) { in.Over, in.Settled = true, at(5) },
			want:   counts{OnTime: 6},
		},
		"a word of a newer release": {
			lines: append(ranBut(3, 4), "beat@{3} snoozed 1 {3}", "beat@{4}..{4} frozen 1 x"),
			want:  counts{OnTime: 8, Unknown: 2},
		},
		"runs by hand and of others do not count": {
			lines: append(ranBut(), "beat!0abc done 1 {3}", "beat@{3}+backfill done 1 {3}", "other@{3.5} done 1 {3.5}"),
			want:  counts{OnTime: 10},
		},
		"lost": {lines: ranBut(3), want: counts{OnTime: 9, Lost: 1}, broken: true},
		"lost on the way to another attempt": {
			lines: append(ranBut(3), "beat@{3} failed 1 {3}"), want: counts{OnTime: 9, Lost: 1}, broken: true,
		},
		"done twice": {
			lines: append(ranBut(), "beat@{3} done 1 {3.1}"), want: counts{OnTime: 9, Duplicated: 1}, broken: true,
		},
		"ran again after it was done": {
			lines: append(ranBut(), "beat@{3} failed 2 {3.1}"), want: counts{OnTime: 9, Duplicated: 1}, broken: true,
		},
		"two first attempts": {
			lines: append(ranBut(3), "beat@{3} failed 1 {3}", "beat@{3} done 1 {3.1}"), broken: true,
			want: counts{OnTime: 9, Duplicated: 1},
		},
		"early": {
			lines: append(ranBut(3), "beat@{3} done 1 {2.999}"), want: counts{OnTime: 9, Early: 1}, broken: true,
		},
		"off the grid": {
			lines: append(ranBut(), "beat@{3.5} done 1 {3.5}"), want: counts{OnTime: 10, OffGrid: 1}, broken: true,
		},
		"a missed slot that ran all the same did run": {
			lines: append(append([]string{"beat@{3} missed outage"}, ranBut(3)...), "beat@{3} done 1 {3}"),
			want:  counts{OnTime: 10},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := beats(t)
			in.notes = slices.Values(notes(t, tt.lines...))
			if tt.change != nil {
				tt.change(&in)
			}
			r := judge(in)
			if !maps.Equal(r.Counts, tt.want) {
				t.Errorf("counts = %v, want %v", r.Counts, tt.want)
			}
			if r.Broken() != tt.broken {
				t.Errorf("Broken = %v, want %v: %v", r.Broken(), tt.broken, r.Breaks)
			}
			if int(r.BrokenSlots()) != len(r.Breaks) {
				t.Errorf("%d broken slots, and %d are named", r.BrokenSlots(), len(r.Breaks))
			}
		})
	}
}

func TestJudge_followsChangesOfTheRule(t *testing.T) {
	t.Parallel()
	// Each second until 4.2, then every two seconds, then deleted at 8.1. The change at 4.2 was looked at at 3.9.
	first, second := every(t, time.Second, t0), every(t, 2*time.Second, at(1))
	first.Until, first.Looked = at(4.2), at(3.9)
	second.Until, second.Looked = at(8.1), at(8.1)
	in := beats(t)
	in.Periods = []period{first, second}
	in.Settled = in.To
	in.notes = slices.Values(notes(t,
		"beat@{0} done 1 {0}", "beat@{1} done 1 {1}", "beat@{2} done 1 {2}", "beat@{3} done 1 {3}", // 4 fell between
		`beat@{0}..{3.9} was 0 {"every":"1s"}`,
		"beat@{5} done 1 {5}", "beat@{7} done 1 {7}",
		"beat@{6} done 1 {6}", // on the old grid: it was on its way
		"beat@{7.5} done 1 {7.5}",
		"beat@{8} done 1 {8}", // on the old grid long after it was given up
	))
	r := judge(in)
	want := map[Verdict]int64{OnTime: 6, Changed: 1, OffGrid: 2}
	if !maps.Equal(r.Counts, want) || r.Slots != 7 {
		t.Errorf("%d slots, %v; want 7, %v", r.Slots, r.Counts, want)
	}
}

func TestJudge_countsJitterAsPartOfTheTime(t *testing.T) {
	t.Parallel()
	rule := schedule.Rule{Every: time.Second, Jitter: 900 * time.Millisecond}
	in := beats(t)
	in.Periods, in.Tolerance = []period{periodOf(t, rule, t0)}, time.Millisecond
	var list []history.Note
	for i := range 10 {
		slot := at(float64(i))
		n := history.Note{Schedule: "beat", Slot: slot, Word: "done", Attempt: 1, Claimed: rule.JitterFor("beat", slot)}
		if i == 4 {
			n.Claimed = n.Claimed.Add(-time.Millisecond)
		}
		list = append(list, n)
	}
	in.notes = slices.Values(list)
	if r := judge(in); r.Counts[OnTime] != 9 || r.Counts[Early] != 1 {
		t.Errorf("counts = %v, want 9 on time and 1 early", r.Counts)
	}
}

func TestJudge_measures(t *testing.T) {
	t.Parallel()
	in := beats(t)
	in.notes = slices.Values(notes(t, append([]string{"beat@{5} lost 1 {5.040}"}, append(ranBut(3, 4, 5),
		"beat@{3}..{4} missed 2 policy once", "beat@{5} done 2 {7.5}")...)...))
	r := judge(in)
	if r.P50 != 2*time.Millisecond || r.Max != 40*time.Millisecond {
		t.Errorf("p50 %v, max %v; want 2ms, 40ms", r.P50, r.Max)
	}
	if want := 3038 * time.Millisecond; r.Gap != want || !r.GapAt.Equal(at(2.002)) {
		t.Errorf("gap %v at %v, want %v at %v", r.Gap, r.GapAt, want, at(2.002))
	}
	if r.Retried != 1 || r.LostRuns != 1 || r.Why["missed: policy once"] != 2 {
		t.Errorf("retried %d, lost runs %d, why %v", r.Retried, r.LostRuns, r.Why)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"lag_p50_ms":2`, `"longest_gap_ms":3038`, `"missed":2`, `"broken":false`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("JSON lacks %s: %s", want, b)
		}
	}
}

func TestJudge_namesABoundedNumberOfBrokenSlots(t *testing.T) {
	t.Parallel()
	in := beats(t)
	in.To = at(999.5)
	in.Settled = in.To
	r := judge(in)
	if r.Counts[Lost] != 1000 || len(r.Breaks) != 20 {
		t.Errorf("%d lost, %d named; want 1000, 20", r.Counts[Lost], len(r.Breaks))
	}
}

func TestJudge_keepsTheNewestOfTooManySlots(t *testing.T) {
	t.Parallel()
	old := every(t, time.Millisecond, at(-1000))
	old.Until, old.Looked = t0.Add(-time.Millisecond), t0.Add(-time.Millisecond)
	in := beats(t)
	in.Periods = append([]period{old}, in.Periods...)
	in.From, in.MaxSlots = at(-1000), 110
	in.notes = slices.Values(notes(t, ranBut()...))
	r := judge(in)
	if r.Counts[OnTime] != 10 || r.Slots > 110 || r.Slots < 100 {
		t.Errorf("%d slots, %v; want about 110, 10 on time", r.Slots, r.Counts)
	}
	if !r.From.After(at(-0.2)) || r.From.After(t0) {
		t.Errorf("From = %v, want about 100ms before %v", r.From, t0)
	}
}

func TestVerdict_textGoesBothWays(t *testing.T) {
	t.Parallel()
	for v := OnTime; v <= OffGrid; v++ {
		text, err := v.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back Verdict
		if err := back.UnmarshalText(text); err != nil || back != v {
			t.Errorf("%s: back as %v, %v", text, back, err)
		}
	}
	var v Verdict
	if err := v.UnmarshalText([]byte("fine")); err == nil {
		t.Error("an unknown word is taken for a verdict")
	}
}
