package schedule

import (
	"slices"
	"testing"
)

func TestCron_daylightSaving(t *testing.T) {
	t.Parallel()
	auto := DST{}
	for _, test := range []struct {
		name, expr, zone string
		dst              DST
		from, to         string
		want             []string
	}{
		{
			"a daily time in a gap moves behind it", "30 2 * * *", "Europe/Berlin", auto, "2026-03-28", "2026-03-30",
			[]string{"2026-03-28 02:30:00+01:00", "2026-03-29 03:00:00+02:00"},
		},
		{
			"or is left out", "30 2 * * *", "Europe/Berlin", DST{Gap: DSTGapSkip}, "2026-03-28", "2026-03-31",
			[]string{"2026-03-28 02:30:00+01:00", "2026-03-30 02:30:00+02:00"},
		},
		{
			"several times in a gap become one", "*/20 2 * * *", "Europe/Berlin", auto, "2026-03-29", "2026-03-29 12:00",
			[]string{"2026-03-29 03:00:00+02:00"},
		},
		{
			"and none of their own behind it is doubled", "0,30 2,3 * * *", "Europe/Berlin", auto, "2026-03-29", "2026-03-29 12:00",
			[]string{"2026-03-29 03:00:00+02:00", "2026-03-29 03:30:00+02:00"},
		},
		{
			"a cadence runs on through a gap", "*/30 * * * *", "Europe/Berlin", auto, "2026-03-29T00:00:00Z", "2026-03-29T02:00:00Z",
			[]string{"2026-03-29 01:30:00+01:00", "2026-03-29 03:00:00+02:00", "2026-03-29 03:30:00+02:00", "2026-03-29 04:00:00+02:00"},
		},
		{
			"a daily time that comes twice runs once", "30 2 * * *", "Europe/Berlin", auto, "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z",
			[]string{"2026-10-25 02:30:00+02:00"},
		},
		{
			"or the second time", "30 2 * * *", "Europe/Berlin", DST{Overlap: DSTOverlapSecond}, "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z",
			[]string{"2026-10-25 02:30:00+01:00"},
		},
		{
			"or twice", "30 2 * * *", "Europe/Berlin", DST{Overlap: DSTOverlapBoth}, "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z",
			[]string{"2026-10-25 02:30:00+02:00", "2026-10-25 02:30:00+01:00"},
		},
		{
			"or twice, and then not for a year", "30 2 25 10 *", "Europe/Berlin", DST{Overlap: DSTOverlapBoth}, "2026-10-24T12:00:00Z", "2027-10-24T12:00:00Z",
			[]string{"2026-10-25 02:30:00+02:00", "2026-10-25 02:30:00+01:00"},
		},
		{
			"a cadence does not fall silent for an hour", "0,30 * * * *", "Europe/Berlin", auto, "2026-10-24T23:59:00Z", "2026-10-25T02:00:00Z",
			[]string{
				"2026-10-25 02:00:00+02:00", "2026-10-25 02:30:00+02:00", "2026-10-25 02:00:00+01:00",
				"2026-10-25 02:30:00+01:00", "2026-10-25 03:00:00+01:00",
			},
		},
		{
			"unless it is told to", "0,30 * * * *", "Europe/Berlin", DST{Overlap: DSTOverlapSecond}, "2026-10-24T23:29:00Z", "2026-10-25T02:00:00Z",
			[]string{"2026-10-25 01:30:00+02:00", "2026-10-25 02:00:00+01:00", "2026-10-25 02:30:00+01:00", "2026-10-25 03:00:00+01:00"},
		},
		{
			"half an hour's gap", "15 2 * * *", "Australia/Lord_Howe", auto, "2026-10-03", "2026-10-04",
			[]string{"2026-10-04 02:30:00+11:00"},
		},
		{
			"half an hour twice", "45 1 * * *", "Australia/Lord_Howe", auto, "2026-04-04", "2026-04-05",
			[]string{"2026-04-05 01:45:00+11:00"},
		},
		{
			"a day that never was", "0 12 * * *", "Pacific/Apia", auto, "2011-12-29T12:00:00Z", "2011-12-31T12:00:00Z",
			[]string{"2011-12-29 12:00:00-10:00", "2011-12-31 00:00:00+14:00", "2011-12-31 12:00:00+14:00"},
		},
		{
			"a midnight that never was", "0 0 * * *", "America/Sao_Paulo", auto, "2018-11-03T00:00:00Z", "2018-11-05T12:00:00Z",
			[]string{"2018-11-03 00:00:00-03:00", "2018-11-04 01:00:00-02:00", "2018-11-05 00:00:00-02:00"},
		},
		{
			"a midnight put off by an hour comes once", "0 0 * * *", "Africa/Cairo", auto, "2026-10-29T12:00:00Z", "2026-10-30T21:00:00Z",
			[]string{"2026-10-30 00:00:00+02:00"},
		},
		{
			"the hour before it comes twice", "30 23 * * *", "Africa/Cairo", auto, "2026-10-29T12:00:00Z", "2026-10-30T12:00:00Z",
			[]string{"2026-10-29 23:30:00+03:00"},
		},
		{
			"a quarter lost for good", "10 0 1 1 *", "Asia/Kathmandu", auto, "1985-06-01", "1987-06-01",
			[]string{"1986-01-01 00:15:00+05:45", "1987-01-01 00:10:00+05:45"},
		},
		{
			"far ahead", "30 2 * * *", "Europe/Berlin", auto, "9998-10-24T12:00:00Z", "9998-10-25T12:00:00Z",
			[]string{"9998-10-25 02:30:00+02:00"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := cronIn(test.expr, test.zone)
			r.DST = test.dst
			g := mustGrid(t, r, ts("1970-01-01"))
			got := local(g, r.Location(), ts(test.from), ts(test.to))
			if !slices.Equal(got, test.want) {
				t.Errorf("%s\n got %v\nwant %v", Describe(r), got, test.want)
			}
			var unix []int64
			for s := range g.Between(ts(test.from), ts(test.to)) {
				unix = append(unix, s.Unix())
			}
			compareSlots(t, r, ts(test.from), ts(test.to), unix)
		})
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		expr, zone string
		dst        DST
		slot, want string
	}{
		{
			"30 2 * * *", "Europe/Berlin", DST{}, "2026-03-29T01:00:00Z",
			"02:30 does not exist on 2026-03-29: clocks go forward from 02:00 to 03:00; one run at 03:00 replaces it",
		},
		{
			"*/20 2 * * *", "Europe/Berlin", DST{}, "2026-03-29T01:00:00Z",
			"3 times from 02:00 to 02:40 do not exist on 2026-03-29: clocks go forward from 02:00 to 03:00; one run at 03:00 replaces them",
		},
		{
			"0 12 * * *", "Pacific/Apia", DST{}, "2011-12-30T10:00:00Z",
			"12:00 does not exist on 2011-12-30: clocks go forward from 2011-12-30 00:00 to 2011-12-31 00:00; one run at 00:00 replaces it",
		},
		{
			"30 2 * * *", "Europe/Berlin", DST{Gap: DSTGapSkip}, "2026-03-30T00:30:00Z",
			"02:30 did not exist on 2026-03-29: clocks went forward from 02:00 to 03:00; no slot for it",
		},
		{
			"*/5 * * * *", "Europe/Berlin", DST{}, "2026-03-29T01:00:00Z",
			"12 times from 02:00 to 02:55 did not exist on 2026-03-29: clocks went forward from 02:00 to 03:00; no slot for them",
		},
		{
			"30 2 * * *", "Europe/Berlin", DST{}, "2026-10-25T00:30:00Z",
			"02:30 happens twice on 2026-10-25: clocks go back from 03:00 to 02:00; the first is used",
		},
		{
			"30 2 * * *", "Europe/Berlin", DST{Overlap: DSTOverlapSecond}, "2026-10-25T01:30:00Z",
			"02:30 happens twice on 2026-10-25: clocks go back from 03:00 to 02:00; the second is used",
		},
		{
			"30 2 * * *", "Europe/Berlin", DST{Overlap: DSTOverlapBoth}, "2026-10-25T01:30:00Z",
			"02:30 happens twice on 2026-10-25: clocks go back from 03:00 to 02:00; both are used, this is the second",
		},
		{
			"30 23 * * *", "Africa/Cairo", DST{}, "2026-10-29T20:30:00Z",
			"23:30 happens twice on 2026-10-29: clocks go back from 2026-10-30 00:00 to 2026-10-29 23:00; the first is used",
		},
		{
			"30 30 0 * * *", "Africa/Monrovia", DST{Gap: DSTGapAfter}, "1972-01-07T00:44:30Z",
			"00:30:30 does not exist on 1972-01-07: clocks go forward from 00:00 to 00:44:30; one run at 00:44:30 replaces it",
		},
		{"30 2 * * *", "Europe/Berlin", DST{}, "2026-03-30T00:30:00Z", ""},
		{"30 2 * * *", "Europe/Berlin", DST{Gap: DSTGapSkip}, "2026-03-31T00:30:00Z", ""},
		{"30 2 * * *", "Europe/Berlin", DST{}, "2026-10-25T01:30:00Z", ""}, // not a slot
		{"30 2 * * *", "Europe/Berlin", DST{}, "2026-10-25T00:30:00.5Z", ""},
		{"30 2 * * *", "", DST{}, "2026-03-29T02:30:00Z", ""},
	} {
		r := cronIn(test.expr, test.zone)
		r.DST = test.dst
		if got := r.Explain(ts(test.slot)); got != test.want {
			t.Errorf("%s at %s:\n got %q\nwant %q", Describe(r), test.slot, got, test.want)
		}
	}
	if got := Every(1000).Explain(ts("2026-03-29")); got != "" {
		t.Errorf("an every rule is explained by %q", got)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	full := Rule{
		Cron: "0 2 * * *", Timezone: "Asia/Seoul", DST: DST{DSTGapSkip, DSTOverlapBoth}, Start: "2026-01-01T00:00:00Z",
		Until: ts("2030-01-01"), MaxRuns: 5, Jitter: 90 * 1e9, Missed: MissedAll, CatchUp: day, Overlap: OverlapSkip,
	}
	for want, r := range map[string]Rule{
		"every 1s":             Every(1e9),
		"every 14d":            Every(2 * week).WithDefaults(),
		`cron "0 2 * * *" UTC`: Cron("0 2 * * *", nil),
		`cron "0 2 * * *" Asia/Seoul, dst gap skip, dst overlap both, start 2026-01-01T00:00:00Z, until 2030-01-01T00:00:00Z, ` +
			`max runs 5, jitter 1m30s, missed all, catch up 1d, overlap skip`: full,
	} {
		if got := Describe(r); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
