package foreign_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/foreign"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// wantNotes fails unless there is a note of each place, with the text in it; places of jobs that are left out begin with a -.
func wantNotes(t *testing.T, jobs *foreign.Jobs, want ...[2]string) {
	t.Helper()
	for i := range jobs.Notes {
		n := &jobs.Notes[i]
		at := n.Place.String()
		if n.Left {
			at = "-" + at
		}
		if i >= len(want) || at != want[i][0] || !strings.Contains(n.Text, want[i][1]) {
			t.Errorf("note %d: %s %s", i, at, n)
		}
	}
	if len(jobs.Notes) != len(want) {
		t.Errorf("%d notes, want %d", len(jobs.Notes), len(want))
	}
}

// wantSame fails unless the config that is printed has the same schedules.
func wantSame(t *testing.T, jobs *foreign.Jobs) []producer.Schedule {
	t.Helper()
	text := jobs.YAML("shop")
	f, err := config.Parse("x", text, func(string) string { return "" })
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := f.CheckSchedules(task.Limits{}); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(f.Schedules) != len(jobs.List) || f.Dispatcher.Namespace != "shop" {
		t.Fatalf("%d schedules of %d in\n%s", len(f.Schedules), len(jobs.List), text)
	}
	for i, s := range f.Schedules {
		if got, want := asJSON(t, s), asJSON(t, jobs.List[i].Schedule); got != want {
			t.Fatalf("written %s\n read back %s\nof %s", want, got, text)
		}
	}
	return f.Schedules
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var any any // the payload may be written in two ways
	if err := json.Unmarshal(b, &any); err != nil {
		t.Fatal(err)
	}
	b, err = json.Marshal(any)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const table = `SHELL=/bin/bash
PATH = "/usr/bin:/bin"
MAILTO=ops@example.com
# m h dom mon dow command
*/5 * * * * /opt/poll.sh --quiet >/dev/null 2>&1
17 *	* * *	cd / && run-parts --report /etc/cron.hourly
-0 2 1-7 * SUN  /opt/backup.sh "week $(date +\%V)"
30 4 * * 1-5 mail -s hello bob%Bob,%%where are you?
@daily   /usr/bin/backup.sh
@reboot  /opt/start.sh
0 22-6 * * * night
61 * * * * never
* * * * *
CRON_TZ=Europe/Berlin
HOME=/srv/shop
MAILTO=""
0 9 * * MON-FRI   FOO=1 nice -n 10 ./report
RANDOM_DELAY=10
`

func TestCrontab(t *testing.T) {
	t.Parallel()
	jobs := foreign.Crontab{Timezone: "Asia/Seoul"}.Read("tab", []byte(table))
	list := wantSame(t, jobs)
	for i, want := range []struct{ name, cron, zone, payload string }{
		{"poll.sh", "*/5 * * * *", "Asia/Seoul", `{"command":["/bin/bash","-c","/opt/poll.sh --quiet >/dev/null 2>&1"],"env":{"PATH":"/usr/bin:/bin"}}`},
		{"run-parts", "17 * * * *", "Asia/Seoul", `{"command":["/bin/bash","-c","cd / && run-parts --report /etc/cron.hourly"],"env":{"PATH":"/usr/bin:/bin"}}`},
		{"backup.sh", "0 2 1-7 * SUN", "Asia/Seoul", `{"command":["/bin/bash","-c","/opt/backup.sh \"week $(date +%V)\""],"env":{"PATH":"/usr/bin:/bin"}}`},
		{"mail", "30 4 * * 1-5", "Asia/Seoul", `{"command":["/bin/bash","-c","mail -s hello bob"],"env":{"PATH":"/usr/bin:/bin"},"stdin":"Bob,\n\nwhere are you?\n"}`},
		{"backup.sh-2", "@daily", "Asia/Seoul", `{"command":["/bin/bash","-c","/usr/bin/backup.sh"],"env":{"PATH":"/usr/bin:/bin"}}`},
		{"report", "0 9 * * MON-FRI", "Europe/Berlin", `{"command":["/bin/bash","-c","FOO=1 nice -n 10 ./report"],"dir":"/srv/shop","env":{"PATH":"/usr/bin:/bin"}}`},
	} {
		s := list[i]
		if s.Name != want.name || s.Cron != want.cron || s.Timezone != want.zone || asJSON(t, s.Payload) != asJSON(t, json.RawMessage(want.payload)) {
			t.Errorf("%s %s %s %s", s.Name, s.Cron, s.Timezone, s.Payload)
		}
		if s.Task != "exec" || s.MaxAttempts != 1 || s.Missed != "skip" {
			t.Errorf("%s does not run as cron did: %+v", s.Name, s)
		}
	}
	wantNotes(t, jobs, [2]string{"tab:3", "MAILTO"}, [2]string{"tab:5", "home folder"}, [2]string{"-tab:10", "@reboot"}, [2]string{"-tab:11", "22-6"},
		[2]string{"-tab:12", "61"}, [2]string{"-tab:13", "no command"}, [2]string{"tab:18", "RANDOM_DELAY"})
	if jobs.Left() != 4 {
		t.Errorf("%d are left out", jobs.Left())
	}
}

func TestCrontab_ofTheSystemHasUsers(t *testing.T) {
	t.Parallel()
	jobs := foreign.Crontab{Timezone: "UTC", System: true}.Read("tab", []byte("HOME=/\n17 * * * * root\tcd / && run-parts /etc/cron.hourly\n@weekly root echo hi\n* * * * * root\n"))
	list := wantSame(t, jobs)
	want := `{"command":["/bin/sh","-c","cd / && run-parts /etc/cron.hourly"],"dir":"/"}`
	if len(list) != 2 || list[0].Timezone != "" || asJSON(t, list[0].Payload) != asJSON(t, json.RawMessage(want)) || list[1].Cron != "@weekly" {
		t.Errorf("%+v", list)
	}
	wantNotes(t, jobs, [2]string{"tab:2", "user root"}, [2]string{"-tab:4", "no command"})
}

// Every crontab is printed as a config with the same schedules, and each line is a job, a note or neither.
func FuzzCrontab(f *testing.F) {
	f.Add(table, false)
	f.Add("* * * * * yes: \"- {a: b}\" # x\n@hourly \\%a%b\\n\t\"\u2028", true)
	f.Add("0 0 31 2 * x\n\"a b\" = 'c'\n* * * * * $X `y` <z", false)
	f.Fuzz(func(t *testing.T, text string, system bool) {
		jobs := foreign.Crontab{Timezone: "Europe/Berlin", System: system}.Read("tab", []byte(text))
		wantSame(t, jobs)
		if n := strings.Count(text, "\n") + 1; len(jobs.List)+jobs.Left() > n {
			t.Errorf("%d jobs of %d lines", len(jobs.List)+jobs.Left(), n)
		}
	})
}
