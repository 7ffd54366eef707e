package schedule

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestValidate_namesTheFieldAtFault(t *testing.T) {
	t.Parallel()
	cron := func(change func(*Rule)) Rule {
		r := cronIn("0 2 * * *", "Europe/Berlin")
		change(&r)
		return r
	}
	every := func(change func(*Rule)) Rule {
		r := Every(time.Minute)
		change(&r)
		return r
	}
	for _, test := range []struct {
		rule  Rule
		field string
	}{
		{Rule{}, "every"},
		{Rule{Every: 1, Cron: "* * * * *"}, "every"},
		{Every(-time.Second), "every"},
		{Every(time.Microsecond), "every"},
		{Every(MaxDuration + time.Millisecond), "every"},
		{every(func(r *Rule) { r.Timezone = "Asia/Seoul" }), "timezone"},
		{every(func(r *Rule) { r.DST.Gap = DSTGapSkip }), "dst"},
		{every(func(r *Rule) { r.Start = "tomorrow" }), "start"},
		{every(func(r *Rule) { r.Start = "1969-12-31T23:59:59Z" }), "start"},
		{every(func(r *Rule) { r.Start = "2026-01-01T00:00:00.0005Z" }), "start"},
		{every(func(r *Rule) { r.Until = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }), "until"},
		{every(func(r *Rule) { r.Start, r.Until = "2026-02-01T00:00:00Z", ts("2026-01-01") }), "until"},
		{every(func(r *Rule) { r.MaxRuns = -1 }), "max_runs"},
		{every(func(r *Rule) { r.Jitter = -1 }), "jitter"},
		{every(func(r *Rule) { r.Jitter = time.Hour }), "jitter"},
		{every(func(r *Rule) { r.CatchUp = 1 }), "catch_up"},
		{every(func(r *Rule) { r.Missed = "never" }), "missed"},
		{every(func(r *Rule) { r.Overlap = "both" }), "overlap"},
		{cron(func(r *Rule) { r.Cron = "0 2 * *" }), "cron"},
		{cron(func(r *Rule) { r.Start = StartAligned }), "start"},
		{cron(func(r *Rule) { r.DST.Gap = "before" }), "dst gap"},
		{cron(func(r *Rule) { r.DST.Overlap = "none" }), "dst overlap"},
		{cron(func(r *Rule) { r.Timezone = "Berlin" }), "timezone"},
		{cron(func(r *Rule) { r.Timezone = "right/Europe/Berlin" }), "timezone"},
		{cron(func(r *Rule) { r.Timezone = "../../etc/passwd" }), "timezone"},
		{cron(func(r *Rule) { r.Timezone = strings.Repeat("x", 1<<20) }), "timezone"},
		{Cron("0 2 * * *", time.Local), "timezone"},
		{Cron("0 2 * * *", time.FixedZone("KST", 9*3600)), "timezone"},
	} {
		err := test.rule.Validate()
		fe := wantField(t, err, test.field)
		if len(fe.Value) > 60 {
			t.Errorf("the error quotes %d bytes of its input", len(fe.Value))
		}
		if _, err := test.rule.Grid(ts("2026-01-01")); err == nil {
			t.Errorf("%v: Grid accepts what Validate refuses", test.rule)
		}
		if got := test.rule.FirstAnchor(ts("2026-01-01")); !got.IsZero() {
			t.Errorf("the anchor of an invalid rule is %v, want none", got)
		}
		Describe(test.rule)
		test.rule.Explain(ts("2026-01-01"))
	}
}

func TestValidate_acceptsTheExtremes(t *testing.T) {
	t.Parallel()
	for _, r := range []Rule{
		Every(time.Millisecond),
		Every(MaxDuration),
		{Every: time.Second, Jitter: time.Second},
		{Every: time.Second, Start: "9999-12-30T23:59:59.999Z", Until: time.UnixMilli(maxMilli)},
		{Cron: "@daily", Timezone: "Pacific/Chatham", Start: "2030-01-01T00:00:00+09:00"},
		{Every: time.Second, Until: ts("2030-01-01").Add(1)},
		{Cron: "@daily", CatchUp: week, Missed: MissedAll, Overlap: OverlapReplace, MaxRuns: 1 << 60},
		Cron("0 2 * * *", time.UTC),
	} {
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", Describe(r), err)
		}
	}
}

func TestFirstAnchor(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, now, want string
		rule            Rule
	}{
		{"immediately", "2026-01-01T12:34:56.789999Z", "2026-01-01T12:34:56.789Z", Every(time.Hour)},
		{"aligned", "2026-01-01T12:34:56Z", "2026-01-01T13:00:00Z", Rule{Every: time.Hour, Start: StartAligned}},
		{"aligned, right on time", "2026-01-01T13:00:00Z", "2026-01-01T13:00:00Z", Rule{Every: time.Hour, Start: StartAligned}},
		{"a past time", "2026-01-01T13:00:00Z", "2020-01-01T00:00:07Z", Rule{Every: time.Hour, Start: "2020-01-01T00:00:07Z"}},
		{"a time in a zone", "2026-01-01T13:00:00Z", "2030-01-01T00:00:00Z", Rule{Every: time.Hour, Start: "2030-01-01T09:00:00+09:00"}},
		{"cron", "2026-01-01T13:00:00Z", "2026-01-01T13:00:00Z", Cron("@daily", nil)},
		{"cron from a later time", "2026-01-01T13:00:00Z", "2027-01-01T00:00:00Z", Rule{Cron: "@daily", Start: "2027-01-01T00:00:00Z"}},
		{"cron from an earlier time", "2026-01-01T13:00:00Z", "2026-01-01T13:00:00Z", Rule{Cron: "@daily", Start: "2025-01-01T00:00:00Z"}},
	} {
		if got := test.rule.FirstAnchor(ts(test.now)); !got.Equal(ts(test.want)) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

// storedJSON is what running schedules hold. It must be read and written the same by every release.
var storedJSON = []struct {
	json string
	rule Rule
}{
	{`{"every":"1s"}`, Every(time.Second)},
	{`{"cron":"0 2 * * *"}`, Cron("0 2 * * *", time.UTC)},
	{`{"every":"1d12h","start":"aligned","max_runs":9,"jitter":"1m30s","missed":"all","catch_up":"2h","overlap":"queue"}`, Rule{
		Every: 36 * time.Hour, Start: StartAligned, MaxRuns: 9, Jitter: 90 * time.Second,
		Missed: MissedAll, CatchUp: 2 * time.Hour, Overlap: OverlapQueue,
	}},
	{`{"cron":"0 2 * * *","timezone":"Asia/Seoul","dst":{"gap":"skip","overlap":"both"},"until":"2030-01-01T00:00:00.25Z"}`, Rule{
		Cron: "0 2 * * *", Timezone: "Asia/Seoul", DST: DST{DSTGapSkip, DSTOverlapBoth}, Until: ts("2030-01-01T00:00:00.25Z"),
	}},
}

func TestRule_storedJSON(t *testing.T) {
	t.Parallel()
	for _, test := range storedJSON {
		got, err := json.Marshal(test.rule)
		if err != nil || string(got) != test.json {
			t.Errorf("got %s, %v, want %s", got, err, test.json)
		}
		var back Rule
		if err := json.Unmarshal([]byte(test.json), &back); err != nil || !back.Equal(test.rule) {
			t.Errorf("read back %+v, %v, want %+v", back, err, test.rule)
		}
	}
}

func TestRule_readsWhatANewerReleaseWrote(t *testing.T) {
	t.Parallel()
	var r Rule
	if err := json.Unmarshal([]byte(`{"every":"1s","missed":"half","calendar":"holidays"}`), &r); err != nil {
		t.Fatal(err)
	}
	wantField(t, r.Validate(), "missed")
	b, err := json.Marshal(r)
	if want := `{"every":"1s","missed":"half"}`; err != nil || string(b) != want {
		t.Errorf("got %s, %v, want %s", b, err, want)
	}
	for _, bad := range []string{`{"every":"soon"}`, `{"every":5}`, `[]`} {
		if err := json.Unmarshal([]byte(bad), &r); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestEqual_spellsOutDefaults(t *testing.T) {
	t.Parallel()
	a := Every(time.Second)
	b := Rule{Every: time.Second, Missed: MissedOnce, CatchUp: time.Hour, Overlap: OverlapAllow}
	if !a.Equal(b) || !b.Equal(a) {
		t.Error("a rule differs from itself with its defaults spelled out")
	}
	if a.Equal(Every(time.Minute)) || a.Equal(a.WithDefaults().with(func(r *Rule) { r.Until = ts("2030-01-01") })) {
		t.Error("different rules are equal")
	}
	if !Cron("@daily", nil).Equal(cronIn("@daily", "UTC")) {
		t.Error("UTC differs from no zone")
	}
	seoul, _ := time.LoadLocation("Asia/Seoul")
	a.Until, b.Until = ts("2030-01-01"), ts("2030-01-01").In(seoul)
	if !a.Equal(b) {
		t.Error("one instant in two zones makes rules differ")
	}
}

func (r Rule) with(change func(*Rule)) Rule {
	change(&r)
	return r
}

func TestLocation(t *testing.T) {
	t.Parallel()
	for rule, want := range map[Rule]string{
		Every(time.Second): "UTC", Cron("@daily", nil): "UTC",
		cronIn("@daily", "Asia/Seoul"): "Asia/Seoul", cronIn("@daily", "Nowhere"): "UTC",
	} {
		if got := rule.Location().String(); got != want {
			t.Errorf("%s: got %s, want %s", Describe(rule), got, want)
		}
	}
}

func TestJitterFor_storedValues(t *testing.T) {
	t.Parallel()
	slot := ts("2026-01-01")
	for _, test := range []struct {
		name   string
		slot   time.Time
		jitter time.Duration
		want   time.Duration
	}{
		{"nightly-report", slot, time.Minute, 12655 * time.Millisecond},
		{"nightly-report", slot.Add(time.Second), time.Minute, 35243 * time.Millisecond},
		{"nightly-report", slot, 100 * week, 12756581880 * time.Millisecond},
		{"", slot, time.Minute, 22872 * time.Millisecond},
		{"청소", time.UnixMilli(0).UTC(), time.Hour, 1048607 * time.Millisecond},
		{"nightly-report", slot, time.Millisecond, 0},
		{"nightly-report", slot, 0, 0},
	} {
		r := Rule{Cron: "@daily", Jitter: test.jitter}
		if got := r.JitterFor(test.name, test.slot).Sub(test.slot); got != test.want {
			t.Errorf("%q at %v within %v: got %v, want %v", test.name, test.slot, test.jitter, got, test.want)
		}
	}
}

func TestJitterFor_spreadsEvenly(t *testing.T) {
	t.Parallel()
	r := Rule{Every: time.Second, Jitter: time.Second}
	const n, bins = 100_000, 10
	var bySlot, byName [bins]int
	for i := range n {
		slot := ts("2026-01-01").Add(time.Duration(i) * time.Second)
		bySlot[r.JitterFor("a", slot).Sub(slot)/(time.Second/bins)]++
		slot = ts("2026-01-01")
		byName[r.JitterFor("tenant-"+formatInt(int64(i)), slot).Sub(slot)/(time.Second/bins)]++
	}
	for i := range bins {
		for _, got := range []int{bySlot[i], byName[i]} {
			if got < n/bins*95/100 || got > n/bins*105/100 { // five standard deviations
				t.Errorf("tenth %d has %d of %d", i, got, n)
			}
		}
	}
}
