package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/task"
)

func TestCheck_listsAllProblemsByLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string
	}{
		{`lease: 1ms
concurrency: -1
keep: {dead: 0, done: 0}
queues: {a: 0, b: 0}
lead: oldest
log: {level: loud, format: xml}
schedules:
  - name: a
    every: 1s
    task: http
    priority: urgent
    until: soon
  - name: a
    cron: 61 * * * *
    task: http
    payload: {}
`, []string{"1 lease", "2 concurrency", "3 keep.dead", "3 keep.done", "4 queues.a", "4 queues.b", "5 lead",
			"6 log.level", "6 log.format", "8 schedules[0].payload", "11 schedules[0].priority", "12 schedules[0].until",
			"13 schedules[1].name", "14 schedules[1].cron minute", "16 schedules[1].payload.url"}},

		// A value that cannot be read, or an unknown field, hides nothing else.
		{`drain: -1s
lease: 10ms
lead: oldest
schedules:
  - name: a
    every: 1s
    task: htpt
  - name: b
    task: echo
    cron: "0 25 * * *"
`, []string{"1 drain", "2 lease", "3 lead", "7 schedules[0].task", "10 schedules[1].cron hour"}},
		{"leed: x\nmin_redy: 1s\nstandby: 5\nkeep: 5\nlease: 1ms\n",
			[]string{"1 leed", "2 min_redy", "3 standby", "4 keep", "5 lease"}},
		{`schedules:
  - name: a
    every: 0s
    missed: never
    task: echo
  - name: b
    every: 1s
    task: htpt
    evry: 5s
  - name: c
    task: echo
    cron: "0 25 * * *"
`, []string{"3 schedules[0].every", "4 schedules[0].missed", "8 schedules[1].task", "9 schedules[1].evry", "12 schedules[2].cron hour"}},
		{`schedules:
  - name: a
    task: echo
    cron: "0 25 * * *"
    timezone: Asia/Soul
    missed: never
    overlap: some
    queue: a b
    max_attempts: 0
    dst: {gap: jump, overlap: none, fold: x}
`, []string{"4 schedules[0].cron hour", "5 schedules[0].timezone", "6 schedules[0].missed", "7 schedules[0].overlap",
			"8 schedules[0].queue", "9 schedules[0].max_attempts", "10 schedules[0].dst.fold", "10 schedules[0].dst gap", "10 schedules[0].dst overlap"}},

		// A consequence of such a fault is not a second fault.
		{"schedules:\n  - name: a\n    evry: 1s\n    tsk: echo\n  - {name: [b], cron: [x], task: echo}\n  - c\n",
			[]string{"3 schedules[0].evry", "4 schedules[0].tsk", "5 schedules[1].name", "5 schedules[1].cron", "6 schedules[2]"}},
		{"schedules:\n  - &a {name: a, every: 0s, task: echo}\n  - {<<: *a, name: b, missed: never}\n  - {<<: 5, name: c, every: 1s, task: echo}\n",
			[]string{"2 schedules[0].every", "3 schedules[1].missed", "4 <<"}},
		{"http: {timeout: 5, pass_env: [a-b, c-d], idle_per_host: -1}\ndurability: {replicas: -1, timeout: 1h}\n",
			[]string{"1 http.timeout", "1 http.idle_per_host", "1 http.pass_env", "1 http.pass_env", "2 durability.replicas", "2 durability.timeout"}},
	} {
		_, err := checked("x.yaml", c.text, testEnv())
		var got []string
		for _, p := range ProblemsOf(err) {
			got = append(got, fmt.Sprintf("%d %s", p.Line, field.Of(p).Field))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

func TestUnset_isNoProblemOfTheFile(t *testing.T) {
	t.Parallel()
	f, err := Parse("x.yaml", []byte("namespace: x\nredis: {url: 'redis://${USER}:${PW}@h'}\n"), testEnv("USER", "app"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Check(); err != nil {
		t.Errorf("the file is wrong: %v", err)
	}
	if p := ProblemsOf(f.Unset()); len(p) != 1 || p[0].Line != 2 || field.Of(p[0]).Field != "redis.url" {
		t.Error(p)
	}
}

// A variable to which a payload refers stays a reference: only the run needs it.
func TestLacking_isNoProblemOfTheFile(t *testing.T) {
	t.Parallel()
	const text = `namespace: x
http: {pass_env: [TOKEN, REGION]}
schedules:
  - name: a
    every: 1s
    task: http
    payload: {url: "https://h/${TOKEN}", headers: {Authorization: "Bearer ${TOKEN}"}, body: {region: "${REGION}", as: "$${TEXT}"}}
  - {name: b, every: 1s, task: echo, payload: "${OTHER}"}
`
	f, err := Parse("x.yaml", []byte(text), testEnv("REGION", "r3gion"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Unset(), f.Check()); err != nil {
		t.Errorf("the file is wrong: %v", err)
	}
	if err := f.Lacking(); err == nil || !strings.HasPrefix(err.Error(), `x.yaml:7: schedules[0].payload "${TOKEN}": `) {
		t.Error(err)
	}
	if p := string(f.Schedules[0].Payload); !strings.Contains(p, "Bearer ${TOKEN}") || !strings.Contains(p, "${REGION}") || strings.Contains(p, "r3gion") {
		t.Errorf("%s", p)
	}
	f, err = Parse("x.yaml", []byte(strings.Replace(text, "[TOKEN, REGION]", "[TOKEN]", 1)), testEnv("REGION", "r3gion", "TOKEN", "t"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Check(); err == nil || !strings.HasPrefix(err.Error(), `x.yaml:7: schedules[0].payload "${REGION}": `) {
		t.Error(err)
	}
}

func TestCheckSchedules_takesAListAloneAndTypesOfOthers(t *testing.T) {
	t.Parallel()
	f, err := Parse("x.yaml", []byte("- {name: a, every: 1s, task: invoice.send}\n- {name: b, every: 1s, task: http}\n"), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	err = f.CheckSchedules(task.Limits{})
	if list := ProblemsOf(err); len(list) != 1 || !strings.HasPrefix(err.Error(), "x.yaml:2: schedules[1].payload") {
		t.Errorf("%v", err)
	}
	if err := f.Check(); err == nil || !strings.HasPrefix(err.Error(), "x.yaml:1: ") {
		t.Errorf("as a config: %v", err)
	}
}

func TestCheckSchedules_refusesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"- {name: a, evry: 1s, task: echo, missed: never}\n- {name: b, every: 0s, task: echo}\n", "schedules[0].evry schedules[0].missed schedules[1].every"},
		{"leed: newest\nlease: 1ms\nschedules: [{name: a, every: 0s, task: echo}]\n", "leed schedules[0].every"},
	} {
		f, err := Parse("x.yaml", []byte(c.text), testEnv())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range ProblemsOf(f.CheckSchedules(task.Limits{})) {
			got = append(got, field.Of(p).Field)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: got %q, want %s", c.text, got, c.want)
		}
	}
}
