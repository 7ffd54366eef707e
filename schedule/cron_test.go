package schedule

import (
	"strings"
	"testing"
	"time"
)

func TestParseCron_refuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ expr, field, says string }{
		{" ", "cron", "empty"},
		{"* * * *", "cron", "has 4 fields, and needs 5 or 6"},
		{"* * * * * * 2030", "cron", "year field is not supported"},
		{"* * * * * * * *", "cron", "has 8 fields, and needs 5 or 6"},
		{"@every 5m", "cron", "use the field every"},
		{"@Every 5m", "cron", "use the field every"},
		{"@reboot", "cron", "a restart is not a time"},
		{"@fortnightly", "cron", "unknown shorthand"},
		{"@daily @daily", "cron", "unknown shorthand"},
		{"CRON_TZ=Asia/Seoul * * * * *", "cron", "use the field timezone"},
		{"tz=UTC * * * * *", "cron", "use the field timezone"},
		{"60 * * * * *", "cron second", `second "60": out of range 0-59`},
		{"61 * * * *", "cron minute", `minute "61": out of range 0-59`},
		{"1,61 * * * *", "cron minute", `minute "1,61": 61 is out of range 0-59`},
		{"* 24 * * *", "cron hour", "out of range 0-23"},
		{"* * 0 * *", "cron day of month", "out of range 1-31"},
		{"* * 32 * *", "cron day of month", "out of range 1-31"},
		{"* * * 13 *", "cron month", "1 is January"},
		{"* * * 0 *", "cron month", "out of range 1-12"},
		{"* * * * 8", "cron day of week", "0 and 7 are Sunday"},
		{"* * * JANUARY *", "cron month", `"JANUARY" is not a value (use 1-12, or JAN-DEC)`},
		{"* * * * FEB", "cron day of week", "or SUN-SAT"},
		{"MON * * * *", "cron minute", `"MON" is not a value (use 0-59)`},
		{"-5 * * * *", "cron minute", "a value is missing"},
		{"5- * * * *", "cron minute", "a value is missing"},
		{"1-2-3 * * * *", "cron minute", "not a value"},
		{"1,,2 * * * *", "cron minute", "a value is missing"},
		{", * * * *", "cron minute", "a value is missing"},
		{"+5 * * * *", "cron minute", "not a value"},
		{"5.5 * * * *", "cron minute", "not a value"},
		{"** * * * *", "cron minute", "not a value"},
		{"*-5 * * * *", "cron minute", "not a value"},
		{"99999999999999999999 * * * *", "cron minute", "out of range"},
		{"22-2 * * * *", "cron minute", "write 22-59,0-2"},
		{"* * * * FRI-MON", "cron day of week", "write 5-6,0-1"},
		{"* * * * SAT-TUE", "cron day of week", "write 6,0-2"},
		{"* * * NOV-FEB *", "cron month", "write 11-12,1-2"},
		{"*/0 * * * *", "cron minute", "step 0 out of range 1-60"},
		{"*/61 * * * *", "cron minute", "for a longer interval use every"},
		{"*/ * * * *", "cron minute", "is not a number"},
		{"*/5/5 * * * *", "cron minute", "is not a number"},
		{"*/x * * * *", "cron minute", "is not a number"},
		{"*/99999999999999999999 * * * *", "cron minute", "out of range"},
		{"? * * * *", "cron minute", "use *"},
		{"* * 1,? * *", "cron day of month", "? cannot be part of a list"},
		{"* * L-31 * *", "cron day of month", "out of range 0-30"},
		{"* * L- * *", "cron day of month", "out of range 0-30"},
		{"* * LX * *", "cron day of month", "use L, L-3 or LW"},
		{"* * 32W * *", "cron day of month", "out of range 1-31"},
		{"* * W * *", "cron day of month", "a value is missing"},
		{"* * * * L", "cron day of week", "FRIL is the last Friday"},
		{"* * * * 9L", "cron day of week", "out of range 0-7"},
		{"* * * * MON#6", "cron day of week", `occurrence "6" out of range 1-5`},
		{"* * * * MON#0", "cron day of week", "out of range 1-5"},
		{"* * * * MON#", "cron day of week", "out of range 1-5"},
		{"* * * * #2", "cron day of week", "a value is missing"},
		{"* * * L *", "cron month", "not a value"},
		{"0 0 31 2 *", "cron day of month", `day of month "31": no month "2" has such a day`},
		{"0 0 30 2 *", "cron day of month", "it would never run"},
		{"0 0 30,31 FEB ?", "cron day of month", "it would never run"},
		{"0 0 31 4,6 *", "cron day of month", `no month "4,6" has such a day`},
		{"0 0 31W 9 *", "cron day of month", "it would never run"},
		{"0 0 L-30 4 *", "cron day of month", "it would never run"},
		{"0 0 */31 * MON#2", "cron day of month", `no month has such a day on day of week "MON#2"`},
		{strings.Repeat("1,", 1<<20) + "1 * * * *", "cron", "longer than 1024 characters"},
		{strings.Repeat("1", 1000) + " * * * *", "cron minute", "out of range"},
	} {
		_, err := parseCron(test.expr)
		if wantField(t, err, test.field); !strings.Contains(err.Error(), test.says) {
			t.Errorf("%.60q: got %q, want it to say %q", test.expr, err, test.says)
		}
		if len(err.Error()) > 300 {
			t.Errorf("%.60q: the error has %d characters", test.expr, len(err.Error()))
		}
	}
}

func TestParseCron_meansTheSame(t *testing.T) {
	t.Parallel()
	for a, b := range map[string]string{
		"@yearly": "0 0 1 1 *", "@ANNUALLY": "0 0 1 JAN *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * SUN",
		"@daily": "0 0 * * *", "@midnight": "0 0 0 * * *", "@hourly": "0 * * * *",
		" \t0 0  *\t* *\n": "0 0 * * *", "*/60 * * * *": "0 * * * *", "*/1 * * * *": "* * * * *", "5/10 * * * *": "5-59/10 * * * *",
		"59/10 * * * *": "59 * * * *", "007 * * * *": "7 * * * *", "0 0 ? * 1": "0 0 * * mon", "0 0 ? * ?": "0 0 * * *",
		"0 0 ? * 7": "0 0 ? * 0", "0 0 ? * 5-7": "0 0 ? * FRI-SUN", "0 0 ? * 0-7": "0 0 ? * 0-6", "0 0 ? * MON-SUN": "0 0 ? * 0-6",
		"0 0 ? * 7L": "0 0 ? * SUNL", "0 0 ? * 7#2": "0 0 ? * sun#2", "0 0 ? * 5/1": "0 0 ? * 5,6",
		"0 0 l * *": "0 0 L-0 * *", "0 0 lw * *": "0 0 LW * *", "0 0 15w * *": "0 0 15W * *", "0 0-23 1 * *": "0 * 1 * *",
	} {
		ca, err := parseCron(a)
		cb, err2 := parseCron(b)
		if err != nil || err2 != nil || ca != cb {
			t.Errorf("%q and %q differ: %+v, %v and %+v, %v", a, b, ca, err, cb, err2)
		}
	}
}

func TestCron_dates(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ expr, from, want string }{
		{"0 0 13 * FRI", "2026-03-01", "03-06 03-13 03-20 03-27 04-03 04-10 04-13"}, // either
		{"0 0 */2 * MON", "2026-03-01", "03-09 03-23 04-13 04-27 05-11"},            // both
		{"0 0 1-7 * */7", "2026-03-01", "04-05 05-03 06-07"},                        // both: the first Sunday
		{"0 0 L * *", "2024-01-01", "01-31 02-29 03-31 04-30"},
		{"0 0 L-3,1 * *", "2026-02-01", "02-25 03-01 03-28"},
		{"0 0 LW * *", "2026-01-01", "01-30 02-27 03-31"},
		{"0 0 1W * *", "2026-07-01", "08-03 09-01"},    // 1 August is a Saturday
		{"0 0 31W * *", "2026-05-01", "05-29 07-31"},   // 31 May is a Sunday; June has none
		{"0 0 28W 2 *", "2026-01-01", "02-27 02-26"},   // a Saturday, then a Sunday at the end
		{"0 0 ? * 5L", "2026-01-01", "01-30 02-27"},    //
		{"0 0 ? * MON#5", "2026-01-01", "03-30 06-29"}, // only some months have one
		{"0 0 29 2 *", "2096-03-01", "02-29 02-29"},    // 2100 is no leap year
		{"0 0 1 1 *", "1999-06-01", "01-01 01-01"},
	} {
		r := Cron(test.expr, nil)
		g := mustGrid(t, r, time.Time{})
		var got []string
		at := ts(test.from)
		for range strings.Count(test.want, " ") + 1 {
			at = g.Next(at)
			got = append(got, at.Format("01-02"))
		}
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("%s from %s:\n got %s\nwant %s", test.expr, test.from, s, test.want)
		}
	}
	g := mustGrid(t, Cron("0 0 29 2 *", nil), time.Time{})
	if got := g.Next(ts("2096-03-01")); !got.Equal(ts("2104-02-29")) {
		t.Errorf("the leap day after 2096 is %v", got)
	}
}

func FuzzCron(f *testing.F) {
	for _, seed := range []string{
		"* * * * *", "*/5 0-23/2 1,15,L-3,LW,15W JAN-DEC MON#2,5L,?", "0 0 29 2 */7", "@daily", "@every 5m",
		"TZ=UTC * * * * *", "60 * * * * *", "22-2 * * * *", "0 0 30 2 *", "1/1/1 -- ## LL WW", "\x00 * * * *", "é * * * *",
	} {
		f.Add(seed, int64(1_767_225_600_000), "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, expr string, ms int64, zone string) {
		began := time.Now()
		r := cronIn(expr, zone)
		g, err := r.Grid(time.Time{})
		if err != nil {
			wantOneLine(t, err)
			return
		}
		at := time.UnixMilli(ms)
		next, prev := g.Next(at), g.Prev(at)
		if !next.IsZero() && (!next.After(at) || !g.Prev(next.Add(1)).Equal(next)) {
			t.Fatalf("%s: Next(%v) = %v", Describe(r), at, next)
		}
		if !prev.IsZero() && (!prev.Before(at) || !g.Next(prev.Add(-1)).Equal(prev)) {
			t.Fatalf("%s: Prev(%v) = %v", Describe(r), at, prev)
		}
		r.Explain(next)
		if d := time.Since(began); d > 5*time.Second {
			t.Fatalf("%s took %v", Describe(r), d)
		}
	})
}

func wantOneLine(t *testing.T, err error) {
	t.Helper()
	if s := err.Error(); len(s) > 2000 || strings.ContainsAny(s, "\n\r") {
		t.Fatalf("not one short line: %q", s)
	}
}
