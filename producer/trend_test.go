package producer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
)

// Each entry is counted once in its minute, whoever leads; a slot's wait counts from when it was due, with its jitter.
func TestTrends_countEachEntryOnce(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		w.apply("s", schedule.Every(time.Hour))
		late := schedule.Rule{Every: time.Hour, Jitter: time.Minute}
		w.apply("j", late)
		now := w.now().Truncate(time.Minute)
		due := late.JitterFor("j", time.UnixMilli(5000))
		lines := []string{
			"s@1000 done 1 1500\t300", "s@2000 failed 1 2000\t100", "s@2000 dead 2 9000\t700", "s@4000..8000 missed 5 outage", "s@9000 skipped overlap",
			fmt.Sprintf("j@5000 done 1 %d\t50", due.UnixMilli()+20),
		}
		write := func(at time.Time, line string) {
			t.Helper()
			line, took, _ := strings.Cut(line, "\t")
			must(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: w.q.Keys().History, ID: fmt.Sprintf("%d-1", at.UnixMilli()), Values: []any{"runs", line, "more", took}}).Err())
		}
		term := w.lead("a", "v1", nil).term
		note := func() {
			t.Helper()
			_, _, err := w.noteHealth(t.Context(), term, nil, &trends{}, deaf{})
			must(t, err)
		}
		for i, line := range lines {
			write(now.Add(-time.Minute+time.Duration(i)*time.Second), line)
			if i%2 == 1 {
				note()
			}
			if i == 3 {
				term = w.lead("b", "v2", nil).term
				note()
			}
		}
		write(now, "s@10000 done 1 10000\t40")
		note()
		list, err := w.Trends(t.Context(), now.Add(-2*time.Minute), now.Add(time.Second))
		must(t, err)
		if len(list) != 3 || list[0] != (Trend{At: now.Add(-2 * time.Minute).UTC()}) {
			t.Fatalf("%+v", list)
		}
		got := list[1]
		want := Trend{
			At: now.Add(-time.Minute).UTC(), Done: 2, Failed: 1, Dead: 1, Missed: 5, Skipped: 1, Began: 3, Lag: 520 * time.Millisecond, MaxLag: 500 * time.Millisecond,
			Took: 1150 * time.Millisecond, MaxTook: 700 * time.Millisecond,
		}
		if got.Waiting, got.Running, got.Finished, got.Looked = 0, 0, 0, false; got != want {
			t.Errorf("\n got %+v\nwant %+v", got, want)
		}
		if last := list[2]; last.Done != 1 || last.Took != 40*time.Millisecond {
			t.Errorf("%+v", last)
		}
	})
}

// A slot's wait counts from when it was due, also after the jitter was changed in the term.
func TestTrends_knowAChangedJitter(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		term, now := w.lead("a", "v1", nil).term, w.now()
		var tr trends
		for _, rule := range []schedule.Rule{{Every: time.Hour}, {Every: time.Hour, Jitter: time.Minute}} {
			w.apply("s", rule)
			time.Sleep(time.Second)
			w.note(w.now(), fmt.Sprintf("s@5000 done 1 %d", rule.JitterFor("s", time.UnixMilli(5000)).UnixMilli()+20))
			_, _, err := w.noteHealth(t.Context(), term, nil, &tr, deaf{})
			must(t, err)
		}
		list, err := w.Trends(t.Context(), now, now.Add(time.Second))
		must(t, err)
		if list[0].Began != 2 || list[0].MaxLag != 20*time.Millisecond {
			t.Errorf("%+v", list[0])
		}
	})
}

// The leader looks at the backlog also when nothing runs, and the most of a minute counts.
func TestTrends_knowTheBacklog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Mini(t).Client)
	term := w.lead("a", "v1", nil).term
	var tr trends
	_, _, err := w.noteHealth(t.Context(), term, nil, &tr, deaf{})
	must(t, err)
	if _, _, err := w.noteHealth(t.Context(), term, nil, &tr, deaf{}); err != nil { // too soon to look again, and nothing to note
		t.Fatal(err)
	}
	list, err := w.Trends(t.Context(), w.now().Add(-time.Hour), w.now().Add(time.Minute))
	must(t, err)
	looked := 0
	for i := range list {
		if list[i].Looked {
			looked++
		}
	}
	if looked != 1 || len(list) != 62 && len(list) != 61 {
		t.Errorf("%d of %d minutes", looked, len(list))
	}
	if all, err := w.Trends(t.Context(), time.Time{}, w.now()); err != nil || len(all) != int(trendSlots) {
		t.Errorf("%d minutes of a week, %v", len(all), err)
	}
}

func TestTrend_isReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		want := Trend{At: time.Unix(60*rapid.Int64Range(0, 1<<30).Draw(r, "minute"), 0).UTC(), Looked: rapid.Bool().Draw(r, "looked")}
		for _, n := range want.numbers() {
			*n = rapid.Int64Range(0, 1<<50).Draw(r, "n")
		}
		text := want.encode()
		if got := parseTrend(text, want.At); got != want {
			r.Fatalf("%q became %+v", text, got)
		}
		other := want.At.Add(TrendsKept) // has its place
		if got := parseTrend(text, other); got != (Trend{At: other}) || trendField(other) != trendField(want.At) {
			r.Fatalf("of a week before: %+v", got)
		}
	})
	for _, bad := range []string{"", "x", "1 true", "0 true 1 2 3 4 5 6 7 8 9 10 11 12 13 -1"} {
		if got := parseTrend(bad, time.Unix(0, 0)); got != (Trend{At: time.Unix(0, 0)}) {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}
