package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const someTab = "MAILTO=a@b\n0 2 * * * /opt/backup.sh\n*/5 * * * * /opt/poll.sh\n"

// import prints a config that check accepts, and --apply makes the same schedules.
func TestImport_printsOrApplies(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	tab := s.file("tab", someTab)
	r := s.run("", "import", "crontab", tab, "--timezone", "Asia/Seoul", "-n", s.ns)
	if r.code != exitFine || !strings.Contains(r.err, "note: "+tab+":1: MAILTO") {
		t.Fatalf("%+v", r)
	}
	config := s.file("onbeat.yaml", r.out)
	if c := s.run("", "check", "--allow-exec", config); c.code != exitFine || strings.Contains(c.out, "warning") || cells(c.out, "backup.sh") == nil {
		t.Errorf("%+v\n%s", c, r.out)
	}
	if r := s.run("", "import", "crontab", tab, "--timezone", "Asia/Seoul", "--dry-run"); r.code != exitFine || strings.Count(r.out, "would make") != 2 {
		t.Errorf("%+v", r)
	}
	if r := s.run("", "schedules", "list"); strings.Contains(r.out, "poll.sh") {
		t.Errorf("a dry run makes schedules: %s", r.out)
	}
	for _, want := range []string{"made", "unchanged"} {
		if r := s.run(someTab, "import", "crontab", "-", "--timezone", "Asia/Seoul", "--apply"); r.code != exitFine || strings.Count(r.out, want) != 2 {
			t.Errorf("%+v", r)
		}
	}
	if r := s.run("", "schedules", "show", "backup.sh"); !strings.Contains(r.out, "Asia/Seoul") {
		t.Errorf("%+v", r)
	}
	r = s.run("", "import", "crontab", tab, "--timezone", "UTC", "--json")
	var got struct {
		Schedules []struct{ Name, Cron string }
		Notes     []struct {
			Line int
			Left bool `json:"left_out"`
		}
	}
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || len(got.Schedules) != 2 || got.Schedules[1].Cron != "*/5 * * * *" || len(got.Notes) != 2 || got.Notes[0].Line != 1 {
		t.Errorf("%v: %+v", err, r)
	}
}

// A job that is left out is never passed over in silence: the exit code tells, and nothing is applied before it was seen.
func TestImport_leavesNothingOutInSilence(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	tab := s.file("tab", someTab+"@reboot /opt/start.sh\n")
	left := "onbeat: " + tab + ":4: left out: @reboot"
	if r := s.run("", "import", "crontab", tab, "--timezone", "UTC"); r.code != exitFailed || !strings.Contains(r.err, left) || !strings.Contains(r.out, "name: poll.sh") {
		t.Errorf("%+v", r)
	}
	if r := s.run("", "import", "crontab", tab, "--timezone", "UTC", "--apply"); r.code != exitFailed || !strings.Contains(r.err, "--skip-bad") || r.out != "" {
		t.Errorf("%+v", r)
	}
	if r := s.run("", "import", "crontab", tab, "--timezone", "UTC", "--apply", "--skip-bad"); r.code != exitFailed || strings.Count(r.out, "made") != 2 {
		t.Errorf("%+v", r)
	}
}

func TestImport_refusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, args := range [][]string{
		{"crontab", "/no/such/file"}, {"crontab", s.file("tab", someTab), "--timezone", "Mars/Phobos"}, {"systemd-timers", "/no/such/folder"}, {"systemd-timers", t.TempDir()},
		{"k8s-cronjob", s.file("a.yaml", "a: [")}, {"celery-beat", s.file("b.py", "x = 1")}, {"k8s-cronjob"}, {"anacron", "x"},
	} {
		if r := s.run("", append([]string{"import"}, args...)...); r.code != exitAsked || r.out != "" || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if r := s.run("# no job\n", "import", "crontab", "-", "--timezone", "UTC"); r.code != exitFine || r.out != "" || !strings.Contains(r.err, "no job") {
		t.Errorf("an empty crontab: %+v", r)
	}
	gone := testEnv("ONBEAT_REDIS_URL", "redis://127.0.0.1:1", "ONBEAT_NAMESPACE", "x")
	if r := runWith(t.Context(), gone, someTab, "import", "crontab", "-", "--timezone", "UTC", "--apply"); r.code != exitFailed {
		t.Errorf("without Redis: %+v", r)
	}
}

var fence = regexp.MustCompile("(?ms)^```(\\w+) ?([\\w.-]*)\n(.*?)^```$")

// Each guide has the same jobs before and after, and shows the output of import.
func TestGuides_showWhatImportPrints(t *testing.T) {
	t.Parallel()
	for page, source := range map[string][]string{
		"cron": {"crontab", "shop.cron", "--timezone", "Europe/Berlin"}, "systemd-timers": {"systemd-timers", "."}, "k8s-cronjob": {"k8s-cronjob", "report.yaml"},
		"celery-beat": {"celery-beat", "shop.py"},
	} {
		text, err := os.ReadFile("../../docs/from/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		after := ""
		for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
			switch {
			case block[2] == "onbeat.yaml":
				after = block[3]
			case block[2] != "":
				put(t, filepath.Join(dir, block[2]), block[3])
			}
		}
		args := append([]string{"import"}, source...)
		args[2] = filepath.Join(dir, args[2])
		r := runWith(t.Context(), testEnv("TZ", "Europe/Berlin"), "", append(args, "-n", "shop")...)
		if got := strings.ReplaceAll(r.out, dir+"/", ""); got != after || after == "" {
			t.Errorf("%s.md has\n%s\nand import prints\n%s%s", page, after, got, r.err)
		}
		for line := range strings.SplitSeq(strings.TrimSpace(strings.ReplaceAll(r.err, dir+"/", "")), "\n") {
			if !strings.Contains(string(text), "\n"+line+"\n") {
				t.Errorf("%s.md lacks the line %s", page, line)
			}
		}
		if c := runWith(t.Context(), testEnv(), after, "check", "--allow-exec", "-"); c.code != exitFine && page != "celery-beat" { // its types need a Go program
			t.Errorf("%s.md: %+v", page, c)
		}
	}
}

// After a move each guide shows a config that check accepts, or a program that compiles.
func TestGuides_showWhatRuns(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/from/*.md")
	if err != nil || len(pages) < 9 {
		t.Fatalf("%d guides: %v", len(pages), err)
	}
	for _, name := range pages {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		shown := 0
		for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
			switch {
			case block[2] == "main.go":
				shown++
				main := put(t, filepath.Join(t.TempDir(), "main.go"), block[3])
				if out, err := exec.CommandContext(t.Context(), "go", "vet", main).CombinedOutput(); err != nil {
					t.Errorf("%s: %v: %s", name, err, out)
				}
			case block[2] == "onbeat.yaml":
				shown++
				r := runWith(t.Context(), testEnv("SHOP_KEY", "0123456789abcdef"), block[3], "check", "--allow-exec", "-")
				if r.code != exitFine && !strings.Contains(name, "celery") { // its types need a Go program
					t.Errorf("%s: %+v", name, r)
				}
			}
		}
		if shown == 0 {
			t.Errorf("%s shows nothing that runs", name)
		}
	}
}
