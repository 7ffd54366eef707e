package foreign_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/foreign"
)

// units writes unit files into a folder.
func units(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func timers(t *testing.T, dir string) *foreign.Jobs {
	t.Helper()
	var jobs foreign.Jobs
	if err := jobs.Timers(dir, "Europe/Berlin"); err != nil {
		t.Fatal(err)
	}
	for i := range jobs.Notes {
		jobs.Notes[i].File = filepath.Base(jobs.Notes[i].File)
	}
	return &jobs
}

func TestTimers(t *testing.T) {
	t.Parallel()
	jobs := timers(t, units(t, map[string]string{
		"backup.timer": "[Unit]\nDescription=x\n[Timer]\nOnCalendar=daily\nOnCalendar=Sat 12:00 Asia/Seoul\nPersistent=true\nRandomizedDelaySec=5min 30s\nWakeSystem=yes\n[Install]\nWantedBy=timers.target\n",
		"backup.service": "[Service]\nType=oneshot\nUser=backup\nWorkingDirectory=/srv\nEnvironment=A=1 \"B=two words\"\nTimeoutStartSec=1h\n" +
			"ExecStart=/usr/bin/false\n",
		"backup.service.d/own.conf": "[Service]\nExecStart=\nExecStart=/usr/bin/backup \\\n  --rate 50%% 'all of it'\n",
		"poll.timer":                "[Timer]\nOnBootSec=1min\nOnUnitActiveSec=90\nUnit=pull.service\n",
		"pull.service":              "[Service]\nExecStart=-/usr/bin/pull\n",
		"boot.timer":                "[Timer]\nOnBootSec=15min\n",
		"boot.service":              "[Service]\nExecStart=/bin/x\n",
		"lost.timer":                "[Timer]\nOnCalendar=daily\n",
		"many.timer":                "[Timer]\nOnCalendar=daily\n",
		"many.service":              "[Service]\nType=oneshot\nExecStart=/bin/a\nExecStart=/bin/b\n",
		"of@.timer":                 "[Timer]\nOnCalendar=daily\n",
		"of@.service":               "[Service]\nExecStart=/bin/a %i\n",
		"vars.timer":                "[Timer]\nOnCalendar=daily\n",
		"vars.service":              "[Service]\nExecStart=/bin/a $MORE\n",
		"year.timer":                "[Timer]\nOnCalendar=2030-*-* 00:00\n",
		"year.service":              "[Service]\nExecStart=/bin/a\n",
	}))
	list := wantSame(t, jobs)
	if len(list) != 3 {
		t.Fatalf("%+v", list)
	}
	want := `{"command":["/usr/bin/backup","--rate","50%","all of it"],"dir":"/srv","env":{"A":"1","B":"two words"}}`
	s := list[0]
	if s.Name != "backup" || s.Cron != "0 0 * * *" || s.Timezone != "Europe/Berlin" || s.Missed != "once" || s.Overlap != "skip" || s.Jitter != 330*time.Second ||
		s.Timeout != time.Hour || asJSON(t, s.Payload) != want {
		t.Errorf("%+v %s", s, s.Payload)
	}
	if s := list[1]; s.Name != "backup-2" || s.Cron != "0 12 * * SAT" || s.Timezone != "Asia/Seoul" {
		t.Errorf("%+v", s)
	}
	if s := list[2]; s.Name != "poll" || s.Every != 90*time.Second || s.Missed != "skip" || !strings.Contains(string(s.Payload), "|| :") {
		t.Errorf("%+v %s", s, s.Payload)
	}
	wantNotes(t, jobs, [2]string{"backup.timer:8", "WakeSystem"}, [2]string{"backup.service:3", "User=backup"}, [2]string{"-boot.timer:2", "OnBootSec"},
		[2]string{"-lost.timer", "lost.service"}, [2]string{"-many.service:4", "2 commands"}, [2]string{"-of@.service:2", "ExecStart"},
		[2]string{"-vars.service:2", "variables"}, [2]string{"-year.timer:2", "years"})
}

// Only the start of a oneshot lasts as long as its run. All other services run until RuntimeMaxSec.
func TestTimers_timeouts(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]time.Duration{
		"Type=oneshot\nTimeoutStartSec=1h\nRuntimeMaxSec=2h\n": time.Hour,
		"Type=oneshot\nTimeoutSec=1h\n":                        time.Hour,
		"Type=notify\nTimeoutStartSec=1h\nRuntimeMaxSec=2h\n":  2 * time.Hour,
		"TimeoutStartSec=1h\n":                                 24 * time.Hour,
	} {
		jobs := timers(t, units(t, map[string]string{"x.timer": "[Timer]\nOnCalendar=daily\n", "x.service": "[Service]\nExecStart=/bin/x\n" + settings}))
		if list := wantSame(t, jobs); len(list) != 1 || list[0].Timeout != want {
			t.Errorf("%q: %+v", settings, list)
		}
	}
}

// An empty trigger empties all triggers before it. Starts of the machine are named unless a repetition counts from them.
func TestTimers_triggers(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]struct {
		jobs  int
		notes [][2]string
	}{
		"OnCalendar=daily\nOnUnitActiveSec=1h\nOnBootSec=\nOnCalendar=weekly\n": {jobs: 1},
		"OnCalendar=daily\nOnUnitActiveSec=1h\nPersistent=\n":                   {jobs: 2},
		"OnCalendar=daily\nOnBootSec=1min\n":                                    {jobs: 1, notes: [][2]string{{"x.timer:3", "OnBootSec"}}},
		"OnCalendar=daily\nOnBootSec=1min\nOnUnitActiveSec=1h\n":                {jobs: 2},
	} {
		jobs := timers(t, units(t, map[string]string{"x.timer": "[Timer]\n" + settings, "x.service": "[Service]\nExecStart=/bin/x\n"}))
		if list := wantSame(t, jobs); len(list) != want.jobs {
			t.Errorf("%q: %+v", settings, list)
		}
		wantNotes(t, jobs, want.notes...)
	}
}

func TestTimers_inAFolderOfTheUser(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{"%h/jobs": "", "~": "", "-~": "", "/srv/100%%": "/srv/100%", "-/srv/a~": "/srv/a~"} {
		jobs := timers(t, units(t, map[string]string{"x.timer": "[Timer]\nOnCalendar=daily\n", "x.service": "[Service]\nExecStart=/bin/x\nWorkingDirectory=" + dir + "\n"}))
		list := wantSame(t, jobs)
		if want == "" {
			wantNotes(t, jobs, [2]string{"-x.service:3", "WorkingDirectory"})
		} else if len(list) != 1 || asJSON(t, list[0].Payload) != `{"command":["/bin/x"],"dir":"`+want+`"}` {
			t.Errorf("%s: %+v %v", dir, list, jobs.Notes)
		}
	}
}

// Odd files in a folder are named, and hold up no unit.
func TestTimers_withOddFiles(t *testing.T) {
	t.Parallel()
	service := "[Service]\nExecStart=/bin/a\n"
	dir := units(t, map[string]string{
		"dir.timer/x":           "",
		"empty.timer":           "",
		"good.timer":            "[Timer]\nOnCalendar=daily\n",
		"good.service":          service,
		"good.service.d/x":      "[Service]\nExecStart=/bin/b\n",
		"good.service.d/n.conf": "",
		"none.timer":            "[Timer]\nAccuracySec=1s\n",
		"none.service":          service,
		"up.timer":              "[Timer]\nOnCalendar=daily\nUnit=../../etc/passwd\n",
		"off.timer":             "[Timer]\nOnCalendar=daily\n",
	})
	if err := os.Symlink(os.DevNull, filepath.Join(dir, "masked.timer")); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(os.DevNull, filepath.Join(dir, "off.service")); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfifo", filepath.Join(dir, "pipe.timer")).CombinedOutput(); err != nil {
		t.Skipf("mkfifo: %s", out)
	}
	jobs := timers(t, dir)
	if list := wantSame(t, jobs); len(list) != 1 || list[0].Name != "good" || !strings.Contains(string(list[0].Payload), "/bin/a") {
		t.Errorf("%+v", list)
	}
	wantNotes(t, jobs, [2]string{"-dir.timer", "no regular file"}, [2]string{"-empty.timer", "masked"}, [2]string{"-masked.timer", "masked"},
		[2]string{"-none.timer", "OnCalendar"}, [2]string{"-off.service", "masked"}, [2]string{"-pipe.timer", "no regular file"}, [2]string{"-up.timer", "Unit="})
}

var elapse = regexp.MustCompile(`(?m)^\s*(?:Next elapse|Iter\. #\d+|Iteration #\d+): \w+ (\S+ \S+) UTC$`)

// Each event comes at the times at which systemd itself says that it comes.
func TestTimers_comeWhenSystemdSays(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here")
	}
	for _, event := range []string{
		"minutely", "hourly", "daily", "weekly", "monthly", "quarterly", "semiannually", "yearly", "*-*-* 04:00:00", "*:0/15", "*:07", "Mon..Fri 10:00",
		"Fri..Sun 22:30:05", "Mon,Thu 6:5", "Sun *-*-1..7 4:10:00", "Tue *-*-15..21 0:0", "*-02~01", "*-*~01 23:00", "*-01,07-01 12:00", "*-1..3-5/10 08:00",
		"*-*-* 0/6:30", "*-*-* *:*:0/20", "Wednesday 17:48", "01-01", "*-*-* 8..18/2:00:00",
	} {
		jobs := timers(t, units(t, map[string]string{"x.timer": "[Timer]\nOnCalendar=" + event + " UTC\n", "x.service": "[Service]\nExecStart=/bin/x\n"}))
		if len(jobs.List) != 1 {
			t.Errorf("%s: %v", event, jobs.Notes)
			continue
		}
		const n = 30
		base := time.Date(2027, 1, 30, 12, 0, 0, 0, time.UTC)
		out, err := exec.CommandContext(t.Context(), program, "calendar", "--base-time=2027-01-30 12:00:00 UTC", "--iterations=30", event+" UTC").CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", event, err, out)
		}
		said := elapse.FindAllStringSubmatch(string(out), -1)
		if len(said) != n {
			t.Fatalf("%s: %d times in %s", event, len(said), out)
		}
		grid, err := jobs.List[0].Schedule.Grid(base)
		if err != nil {
			t.Fatal(err)
		}
		at := base
		for i := range said {
			if at = grid.Next(at); at.Format(time.DateTime) != said[i][1] {
				t.Errorf("%s is %s: time %d is %s, and systemd says %s", event, jobs.List[0].Schedule.Cron, i, at, said[i][1])
				break
			}
		}
	}
}

func FuzzTimers(f *testing.F) {
	f.Add("[Timer]\nOnCalendar=Mon..Fri *-*-1..7 10:00\nRandomizedDelaySec=1h\n", "[Service]\nExecStart=/bin/sh -c 'x \"y\" \\n'\n")
	f.Add("[Timer]\nOnUnitActiveSec=1h 5min\nOnCalendar=*-02~01\n", "[Service]\nEnvironment=a \\\n# c\n b=c\nExecStart=-a")
	f.Fuzz(func(t *testing.T, timer, service string) {
		dir := units(t, map[string]string{"x.timer": timer, "x.service": service})
		var jobs foreign.Jobs
		if jobs.Timers(dir, "UTC") == nil {
			wantSame(t, &jobs)
		}
	})
}
