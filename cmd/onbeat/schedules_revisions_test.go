package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
)

func TestSchedules_revisionsAndRevert(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("schedules", "apply", s.file("s.yaml", "- {name: a, every: 1h, task: echo}"))
	s.must("schedules", "apply", s.file("s.yaml", "- {name: a, every: 2h, task: echo}"))
	out := s.must("schedules", "revisions", "a")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 3 || !strings.Contains(lines[0], " changed by "+actor()+" ") ||
		lines[1] != "  every: 1h → 2h" || !strings.Contains(lines[2], " made by "+actor()+" ") {
		t.Errorf("%s", out)
	}
	var list admin.List[admin.Revision]
	s.json(&list, "schedules", "revisions", "a")
	first := fmt.Sprint(list.Items[1].Revision)
	if out := s.must("schedules", "show", "a"); !strings.Contains(out, "revision   "+fmt.Sprint(list.Items[0].Revision)+"\n") {
		t.Errorf("%s", out)
	}
	if out := s.must("schedules", "revert", "a", first); out != "reverted a\n" {
		t.Errorf("%q", out)
	}
	if out := s.must("schedules", "revert", "a", first, "--json"); out != `[{"name":"a","result":"unchanged"}]`+"\n" {
		t.Errorf("%q", out)
	}
	var got admin.Schedule
	if s.json(&got, "schedules", "show", "a"); got.Every != time.Hour {
		t.Errorf("%+v", got)
	}
	s.json(&list, "schedules", "revisions", "a", "--limit", "1")
	if len(list.Items) != 1 || list.Items[0].What != "reverted" || list.Next == "" {
		t.Errorf("%+v", list)
	}
	if out := s.must("schedules", "revisions", "a", "--limit", "2"); !strings.Contains(out, "more: --after ") {
		t.Errorf("%s", out)
	}
	s.fails(2, []string{"schedules", "revert", "a", "7"}, `revision "7": not known`, "onbeat schedules revisions a")
	s.fails(2, []string{"schedules", "revisions", "a", "--limit", "0"}, `limit "0"`)
	s.fails(2, []string{"schedules", "revisions", "a", "--after", "x"}, `after "x": not a cursor`)
	for _, args := range [][]string{{"schedules", "revert", "none", first}, {"schedules", "revisions", "none"}} {
		s.fails(1, args, `schedule "none": not found`)
	}
}

func TestSchedules_deletedAndRestored(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	if out := s.must("schedules", "list", "--deleted"); out != "no deleted schedules in "+s.ns+"\n" {
		t.Errorf("%q", out)
	}
	s.must("schedules", "apply", s.file("s.yaml", "- {name: a, every: 1h, task: echo}\n- {name: b, every: 1h, task: echo}"))
	s.must("schedules", "pause", "b")
	s.must("schedules", "delete", "a", "b")
	out := s.must("schedules", "list", "--deleted")
	if row := strings.Join(cells(out, "b"), " "); !strings.HasPrefix(row, "b every 1h echo ") || !strings.HasSuffix(row, " "+actor()+" paused, applied") {
		t.Errorf("%q in\n%s", row, out)
	}
	var list admin.List[admin.Schedule]
	s.json(&list, "schedules", "list", "--deleted")
	if len(list.Items) != 2 || list.Items[0].Name != "a" || list.Items[0].Deleted == nil {
		t.Errorf("%+v", list)
	}
	s.fails(1, []string{"schedules", "show", "a"}, `schedule "a": not found`, "onbeat schedules restore lets it go on")
	if out := s.must("schedules", "restore", "b", "a"); out != "restored b\nrestored a\n" {
		t.Errorf("%q", out)
	}
	if out := s.must("schedules", "list"); !strings.Contains(out, "paused for ") || cells(out, "a") == nil {
		t.Errorf("%s", out)
	}
	s.fails(1, []string{"schedules", "restore", "a"}, `deleted schedule "a": not found`, "onbeat schedules list --deleted")
	if out := s.must("schedules", "revisions", "a"); !strings.Contains(out, " restored by ") || !strings.Contains(out, " deleted by ") {
		t.Errorf("%s", out)
	}
}
