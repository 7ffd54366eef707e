package main

import (
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/secret"
)

// The secret fields of a payload are shown only on demand, by whatever way a command reaches the namespace. The config of the user who
// looks, or of the server of the API, names the secret fields of a type.
func TestReveal_showsWhatIsSecretAndNothingElseDoes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	const card = "the-number-of-the-card"
	conf := s.file("onbeat.yaml", "redis: {url: '"+s.url+"'}\nnamespace: "+s.ns+"\nsecret: {pay: [card]}\n")
	apply := func(name, typ, card, secret string) {
		t.Helper()
		s.must("-c", conf, "schedules", "apply", s.file("s.yaml",
			"schedules: [{name: "+name+", every: 1h, task: "+typ+", payload: {card: "+card+", n: 1}, secret: ["+secret+"]}]\n"))
	}
	apply("typed", "pay", "0-"+card, "")
	apply("typed", "pay", "1-"+card, "")
	apply("own", "echo", "0-"+card, "card")
	apply("own", "echo", "1-"+card, "card")
	apply("gone", "pay", card, "")
	s.must("-c", conf, "schedules", "delete", "gone")
	s.must("-c", conf, "enqueue", "pay", "--id", "t", "--in", "1h", "--payload", `{"card":"`+card+`"}`)
	api := s.throughAPI(t, map[string][]string{"pay": {"card"}})
	over := map[string]func(args ...string) ran{
		"redis": func(args ...string) ran {
			return runWith(t.Context(), testEnv(), "", append([]string{"-c", conf}, args...)...)
		},
		"api": func(args ...string) ran {
			return runWith(t.Context(), testEnv("ONBEAT_API", api, "ONBEAT_TOKEN", apiToken), "", args...)
		},
	}
	for how, run := range over {
		for _, line := range []string{
			"schedules show typed", "schedules show own", "schedules show typed --json", "schedules show own --json", "schedules list --json",
			"schedules list --deleted --json", "schedules revisions typed", "schedules revisions own", "schedules revisions typed --json",
			"schedules revisions gone --json", "tasks show t", "tasks show t --json", "tasks list --json",
		} {
			args := strings.Fields(line)
			if r := run(args...); r.code != 0 || strings.Contains(r.out+r.err, "number-of") || !strings.Contains(r.out, secret.Masked) {
				t.Errorf("over %s: %s: %+v", how, line, r)
			}
			if r := run(append(args, "--reveal")...); r.code != 0 || !strings.Contains(r.out, card) {
				t.Errorf("over %s: %s --reveal: %+v", how, line, r)
			}
		}
		for _, line := range []string{"events --json --since 1h", "schedules list", "schedules list --deleted", "tasks list", "schedules delete own --json"} {
			if r := run(strings.Fields(line)...); r.code != 0 || strings.Contains(r.out+r.err, "number-of") {
				t.Errorf("over %s: %s: %+v", how, line, r)
			}
		}
		if r := run("schedules", "restore", "own"); r.code != 0 || strings.Contains(r.out+r.err, "number-of") {
			t.Errorf("over %s: restore: %+v", how, r)
		}
	}
}
