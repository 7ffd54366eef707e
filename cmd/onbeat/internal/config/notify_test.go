package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/internal/field"
)

func TestNotify_readsSecretsFromTheEnvironmentAndFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	putKey(t, filepath.Join(dir, "url"), "https://hooks.example/sesame\n", 0o600)
	putKey(t, filepath.Join(dir, "body"), "{{json .Title}}", 0o600)
	const text = `
http: {deny_private: true}
notify:
  - {name: oncall, url: "https://${HOST}/hook", key: "${KEY}", on: [dead, leader], schedules: ["billing.*"], window: 5m, failing: 7, stale: 4, timeout: 3s}
  - {name: chat, kind: slack, url_file: url}
  - {name: own, kind: template, url: http://127.0.0.1:1/x, template_file: body}
`
	putKey(t, filepath.Join(dir, "x.yaml"), text, 0o600)
	env := testEnv("HOST", "alerts.example", "KEY", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	f, err := Load(filepath.Join(dir, "x.yaml"), env)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	list, err := f.Notify.Targets(env)
	if err != nil || len(list) != 3 {
		t.Fatalf("%d targets, %v", len(list), err)
	}
	a := list[0]
	if a.URL != "https://alerts.example/hook" || len(a.Key) != 24 || len(a.On) != 2 || a.Schedules[0] != "billing.*" || a.Window != 5*time.Minute ||
		a.Failing != 7 || a.Stale != 4 || a.Timeout != 3*time.Second || !a.DenyPrivate {
		t.Error("not what the file says")
	}
	if list[1].URL != "https://hooks.example/sesame" || list[1].Kind != notify.Slack {
		t.Error("not what the files hold")
	}
	var body strings.Builder
	if err := list[2].Template.Execute(&body, &notify.Message{Namespace: "shop", Topic: notify.Dead}); err != nil || body.String() != `"shop: 0 tasks are dead"` {
		t.Errorf("the template makes %s, %v", body.String(), err)
	}
}

// Each fault has its line and what to do, and no refusal shows a secret.
func TestNotify_refusesWhatCouldNotBeUsed(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		`{url: "https://a.example"}`: "notify[0].name",
		`{name: a}`:                  "notify[0].url",
		`{name: a, url: "https://x.example/sesame", url_file: x}`:                     "notify[0].url",
		`{name: a, kind: slack, url: "https://x.example/sesame"}`:                     "notify[0].url",
		`{name: a, url: "x.example/sesame"}`:                                          "notify[0].url",
		`{name: a, url: "${U}", key: sesame}`:                                         "notify[0].key",
		`{name: a, url: "${U}", key: "${K}", key_file: x}`:                            "notify[0].key_file",
		`{name: a, url: "${U}", on: [fire]}`:                                          "notify[0].on",
		`{name: a, url: "${U}", kind: pager}`:                                         "notify[0].kind",
		`{name: a, url: "${U}", kind: template, template: "{{"}`:                      "notify[0].template",
		`{name: a, url: "${U}", kind: template, template: x, template_file: nowhere}`: "notify[0].template_file",
		`{name: a, url: "${U}", window: 100d}`:                                        "notify[0].window",
		`{name: a, url: "${U}", failing: 0}`:                                          "notify[0].failing",
		`{name: a, url: "${U}", fails: 3}`:                                            "notify[0].fails",
	} {
		f, err := Parse("x.yaml", []byte("notify:\n  - "+entry+"\n"), testEnv())
		if err != nil {
			t.Fatal(err)
		}
		err = f.Check()
		found := false
		for _, p := range ProblemsOf(err) {
			about := field.Of(p)
			found = found || about != nil && strings.HasPrefix(about.Field, want) && p.Line == 2
		}
		if !found || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", entry, err)
		}
	}
}

func TestNotify_saysWhichSecretIsNotHere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	putKey(t, filepath.Join(dir, "open"), "https://hooks.example/sesame", 0o600)
	if err := os.Chmod(filepath.Join(dir, "open"), 0o666); err != nil {
		t.Fatal(err)
	}
	text := "notify:\n  - {name: a, url: '${U}'}\n  - {name: b, url: '${V}', key: '${K}'}\n  - {name: c, url_file: " + filepath.Join(dir, "open") + "}\n"
	f, err := Parse("x.yaml", []byte(text), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	_, err = f.Notify.Targets(testEnv("V", "https://hooks.example/sesame", "K", "sesame"))
	list := ProblemsOf(err)
	if len(list) != 3 || list[0].Line != 2 || list[1].Line != 3 || list[2].Line != 4 {
		t.Fatalf("%v", list)
	}
	for _, p := range list {
		if strings.Contains(p.Error(), "sesame") {
			t.Errorf("shows a secret: %v", p)
		}
	}
}
