package schedule

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseCron_refuses(t *testing.T) {
	t.Parallel()
	for field, exprs := range map[string][]string{
		"cron": {
			" ", "* * * *", "* * * * * * 2030", "* * * * * * * *", "@every 5m", "@Every 5m", "@reboot", "@fortnightly", "@daily @daily",
			"CRON_TZ=Asia/Seoul * * * * *", "tz=UTC * * * * *", strings.Repeat("1,", 1<<20) + "1 * * * *",
		},
		"cron second": {
			"60 * * * * *",
		},
		"cron minute": {
			"61 * * * *", "1,61 * * * *", "MON * * * *", "-5 * * * *", "5- * * * *", "1-2-3 * * * *", "1,,2 * * * *", ", * * * *", "+5 * * * *",
			"5.5 * * * *", "** * * * *", "*-5 * * * *", "99999999999999999999 * * * *", "22-2 * * * *", "*/0 * * * *", "*/61 * * * *", "*/ * * * *",
			"*/5/5 * * * *", "*/x * * * *", "*/99999999999999999999 * * * *", "? * * * *", strings.Repeat("1", 1000) + " * * * *",
		},
		"cron hour": {
			"* 24 * * *",
		},
		"cron day of month": {
			"* * 0 * *", "* * 32 * *", "* * 1,? * *", "* * L-31 * *", "* * L- * *", "* * LX * *", "* * 32W * *", "* * W * *", "0 0 31 2 *",
			"0 0 30 2 *", "0 0 30,31 FEB ?", "0 0 31 4,6 *", "0 0 31W 9 *", "0 0 L-30 4 *", "0 0 */31 * MON#2",
		},
		"cron month": {
			"* * * 13 *", "* * * 0 *", "* * * JANUARY *", "* * * NOV-FEB *", "* * * L *",
		},
		"cron day of week": {
			"* * * * 8", "* * * * FEB", "* * * * FRI-MON", "* * * * SAT-TUE", "* * * * L", "* * * * 9L", "* * * * MON#6", "* * * * MON#0",
			"* * * * MON#", "* * * * #2",
		},
	} {
		for _, expr := range exprs {
			_, err := parseCron(expr)
			if wantField(t, err, field); len(err.Error()) > 300 {
				t.Errorf("%.60q: the error has %d characters", expr, len(err.Error()))
			}
		}
	}
	for expr, means := range map[string]string{
		"22-2 * * * *": "22-59,0-2 * * * *", "* * * * SAT-TUE": "* * * * 6,0-2", "* * * NOV-FEB *": "* * * 11-12,1-2 *", "* * * * 7-3": "* * * * 0-3",
	} {
		_, err := parseCron(expr)
		hint := strings.TrimSuffix(err.Error()[strings.LastIndex(err.Error(), " ")+1:], ")")
		if !slices.Contains(strings.Fields(means), hint) {
			t.Errorf("%s: %v, want %s in its place", expr, err, means)
		}
		if _, err := parseCron(means); err != nil {
			t.Errorf("%s: what the hint says is refused: %v", expr, err)
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
