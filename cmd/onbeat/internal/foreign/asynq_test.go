package foreign_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/foreign"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

// fromAsynq imports entries of a scheduler of asynq in Berlin.
func fromAsynq(t *testing.T, specs ...string) []producer.Schedule {
	t.Helper()
	rdb := testredis.Private(t).Client()
	const key = "asynq:schedulers:{x}"
	for _, spec := range specs {
		var entry []byte
		for i, text := range []string{spec, "report"} {
			entry = protowire.AppendString(protowire.AppendTag(entry, protowire.Number(i+2), protowire.BytesType), text)
		}
		if err := rdb.RPush(t.Context(), key, entry).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := rdb.ZAdd(t.Context(), "asynq:schedulers", redis.Z{Member: key}).Err(); err != nil {
		t.Fatal(err)
	}
	var jobs foreign.Jobs
	if err := jobs.Asynq(t.Context(), rdb, "Europe/Berlin"); err != nil {
		t.Fatal(err)
	}
	list := wantSame(t, &jobs)
	if len(list) != len(specs) {
		t.Fatalf("%d of %d: %v", len(list), len(specs), jobs.Notes)
	}
	return list
}

// days returns the days of a month on which a schedule has slots, one for each slot.
func days(t *testing.T, s *producer.Schedule, year int, month time.Month) (list []int) {
	t.Helper()
	zone, err := time.LoadLocation(s.Timezone)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(year, month, 1, 0, 0, 0, 0, zone).Add(-time.Second)
	grid, err := s.Grid(at)
	if err != nil {
		t.Fatal(err)
	}
	for at = grid.Next(at).In(zone); at.Month() == month; at = grid.Next(at).In(zone) {
		list = append(list, at.Day())
	}
	return list
}

// robfig/cron calls a day field with a step no star, wherever it stands, and a list with a star in it one. So asynq and Kubernetes do.
func TestAsynq_combinesDaysAsRobfig(t *testing.T) {
	t.Parallel()
	mondays, odd := []int{1, 8, 15, 22}, []int{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27}
	either := slices.Compact(slices.Sorted(slices.Values(slices.Concat(mondays, odd))))
	even := []int{2, 4, 6, 7, 9, 11, 12, 13, 14, 16, 18, 20, 21, 23, 25, 27, 28} // Tuesday, Thursday, Saturday and Sunday, and the 12th
	specs := []string{"0 3 */2 * MON", "0 3 */2,31 * MON", "0 3 12 * */2", "0 3 1,* * MON", "0 3 */1 * MON", "0 3 ? * MON", "0 3 ?/2 * ?", "0 3 */2 * *"}
	wants := [][]int{either, either, even, mondays, mondays, mondays, odd, odd}
	list := fromAsynq(t, specs...)
	for i, spec := range specs {
		if got := days(t, &list[i], 2027, time.February); !slices.Equal(got, wants[i]) {
			t.Errorf("%s is %s: days %v, want %v", spec, list[i].Cron, got, wants[i])
		}
		jobs := oneCronJob(t, "schedule: '"+spec+"'", "command: [x]")
		if got := wantSame(t, jobs); len(got) != 1 || got[0].Cron != list[i].Cron {
			t.Errorf("%s of Kubernetes is %+v", spec, got)
		}
	}
}

// robfig/cron has no run at a time that the clock leaves out, and two at one that comes twice.
func TestAsynq_changesTheClockAsRobfig(t *testing.T) {
	t.Parallel()
	for _, s := range fromAsynq(t, "30 2 * * *", "CRON_TZ=Europe/Berlin 30 2,14 */1 * *") {
		march, october := days(t, &s, 2027, time.March), days(t, &s, 2027, time.October)
		each := len(days(t, &s, 2027, time.May)) / 31
		if len(march) != 31*each-1 || len(october) != 31*each+1 {
			t.Errorf("%+v: %v, %v", s, march, october)
		}
	}
	for _, s := range fromAsynq(t, "30 * * * *", "@hourly", "TZ=UTC 30 2 * * *") {
		if s.DST != (schedule.DST{}) {
			t.Errorf("%s is noisy: %+v", s.Cron, s.DST)
		}
	}
}

// robfig/cron counts in whole seconds.
func TestAsynq_intervals(t *testing.T) {
	t.Parallel()
	for i, s := range fromAsynq(t, "@every 1500ms", "@every 10ms", "@every 1m30s") {
		if want := []time.Duration{time.Second, time.Second, 90 * time.Second}[i]; s.Every != want {
			t.Errorf("%s, want %s", s.Every, want)
		}
	}
}
