package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
)

// init writes a config that check has nothing to say about, and that an instance runs.
func TestInit_writesAConfigThatRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "onbeat.yaml")
	call := func(args ...string) ran { return runWith(t.Context(), testEnv(), "", args...) }
	if r := call("init", file); r.code != exitFine || r.err != "" {
		t.Fatalf("init: %+v", r)
	}
	r := call("check", file)
	if r.code != exitFine || strings.Contains(r.out, "warning") || cells(r.out, "heartbeat") == nil {
		t.Errorf("check: %+v", r)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := config.Parse(file, text, testEnv())
	if err != nil {
		t.Fatal(err)
	}
	alone := strings.Replace(string(text), "127.0.0.1:8080\n", "127.0.0.1:0\n", 1) // other tests have that address
	p := startProgram(t, dir, []string{"PATH="}, "dev", "-c", put(t, filepath.Join(dir, "alone.yaml"), alone))
	said := p.says("Try in another terminal")
	awaitHeartbeat(t, openInside(t, urlOf(t, dir, said), f.Dispatcher.Namespace).Admin())
	p.interrupt()
	if code := p.exit(20 * time.Second); code != exitFine {
		t.Errorf("exit %d", code)
	}
}

// The lines that a newcomer turns on are right too.
func TestInit_writesCommentsThatAreSettings(t *testing.T) {
	t.Parallel()
	on := strings.NewReplacer("# min_ready", "min_ready", "# tokens", "tokens", "# notify", "notify").Replace(firstConfig)
	env := testEnv("ONBEAT_ADMIN", "0123456789abcdef", "SLACK_WEBHOOK", "https://hooks.slack.com/services/x")
	f, err := config.Parse("onbeat.yaml", []byte(on), env)
	if err == nil {
		err = f.Check()
	}
	if err != nil || f.Dispatcher.MinReady == 0 || len(f.API.Tokens) != 1 || f.Notify.Len() != 1 {
		t.Errorf("%v: %+v", err, f)
	}
}

func TestInit_changesNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mine := put(t, filepath.Join(dir, "onbeat.yaml"), "mine")
	link := filepath.Join(dir, "link.yaml")
	if err := os.Symlink(filepath.Join(dir, "missing"), link); err != nil {
		t.Skip(err)
	}
	for _, file := range []string{mine, link} {
		r := runWith(t.Context(), testEnv(), "", "init", file)
		if r.code == exitFine || !strings.Contains(r.err, filepath.Base(file)) {
			t.Errorf("%s: %+v", file, r)
		}
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) != "mine" {
		t.Errorf("it holds %q: %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "missing")); err == nil {
		t.Error("it followed a link")
	}
}

// The config of deploy/compose.yaml is one that check has nothing to say about.
func TestCompose_hasAConfigThatIsRight(t *testing.T) {
	t.Parallel()
	env := testEnv("POSTGRES_PASSWORD", "x", "ONBEAT_ADMIN", "0123456789abcdef", "ONBEAT_VIEWER", "fedcba9876543210")
	if r := runWith(t.Context(), env, "", "check", "../../deploy/compose/onbeat.yaml"); r.code != exitFine || strings.Contains(r.out, "warning") {
		t.Errorf("%+v", r)
	}
}
