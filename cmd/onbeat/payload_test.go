package main

import (
	"strings"
	"testing"
)

func TestPayload_isReadFromAFileOrStdin(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("p.json", "{\"from\":\"file\"}\n")
	s.must("enqueue", "echo", "--id", "file", "--in", "1h", "--payload", "@"+file)
	if r := s.run(`{"from":"stdin"}`, "enqueue", "echo", "--id", "stdin", "--in", "1h", "-p", "@-"); r.code != exitFine {
		t.Errorf("%+v", r)
	}
	for _, id := range []string{"file", "stdin"} {
		if out := s.must("tasks", "show", id); !strings.Contains(out, `{"from":"`+id+`"}`) {
			t.Errorf("%s: %s", id, out)
		}
	}
	s.must("schedules", "apply", s.file("s.yaml", "[{name: a, every: 1h, task: echo}]\n"))
	id := strings.TrimSpace(s.must("schedules", "trigger", "a", "--payload", "@"+file))
	if out := s.must("tasks", "show", id); !strings.Contains(out, `{"from":"file"}`) {
		t.Errorf("trigger: %s", out)
	}
}

func TestPayload_ofAFileIsRefused(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for value, want := range map[string]string{
		"@/nowhere.json": "/nowhere.json",
		"@" + s.file("two.json", `{"a":1,"a":2}`): "payload.a: ",
		"@-": "payload",
	} {
		s.fails(2, []string{"enqueue", "echo", "--payload", value}, want)
	}
	s.nothingWritten()
}
