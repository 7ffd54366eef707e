package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// command runs a command in the house's namespace.
func (h *auditHouse) command(args ...string) (code int, out string) {
	h.Helper()
	var stdout, stderr bytes.Buffer
	args = append(args, "--redis", h.url, "--namespace", auditNamespace)
	code = run(h.Context(), args, func(string) string { return "" }, strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String() + stderr.String()
}

// The list, the runs and the audit all show a schedule whose job fails each time, and the audit exits with 1.
func TestSchedules_aFailingJobIsSeen(t *testing.T) {
	t.Parallel()
	h := newAuditHouse(t)
	fails := handlers.Func(func(context.Context, *task.Task) error {
		time.Sleep(3 * time.Millisecond)
		return errors.New("no route to\nthe host")
	})
	if err := h.Handle("broken", fails); err != nil {
		t.Fatal(err)
	}
	s := producer.Schedule{Name: "sad", Rule: schedule.Rule{Every: 50 * time.Millisecond}, Task: "broken", MaxAttempts: 1}
	if _, err := h.Admin().Schedules.Apply(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	h.beat("sad")

	_, out := h.command("schedules", "runs", "sad", "--json", "--limit", "1000")
	var page struct {
		Items []struct {
			Slot, Began, Ended                             time.Time
			Took, Lag, Outcome, Error, Instance, Task, Why string
			Attempt                                        int
		}
		Next string
	}
	if err := json.Unmarshal([]byte(out), &page); err != nil || len(page.Items) < 5 || page.Next != "" {
		t.Fatalf("%v: %s", err, out)
	}
	for i, r := range page.Items {
		if r.Outcome == "missed" { // no instance led when the first were due
			continue
		}
		if r.Outcome != "dead" || r.Error != "no route to the host" || r.Attempt != 1 || r.Took == "" || r.Instance == "" ||
			r.Began.Before(r.Slot) || !r.Ended.After(r.Began) || i > 0 && r.Slot.After(page.Items[i-1].Slot.Add(time.Second)) { // the runs of one batch come in any order
			t.Errorf("run %d: %+v", i, r)
		}
	}
	first := page.Items
	seen := map[string]bool{}
	for after := ""; ; {
		_, out := h.command("schedules", "runs", "sad", "--json", "--limit", "2", "--after", after)
		page.Items, page.Next = nil, ""
		if err := json.Unmarshal([]byte(out), &page); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, r := range page.Items {
			if seen[r.Task] {
				t.Errorf("%s is on two pages", r.Task)
			}
			seen[r.Task] = true
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if len(seen) != len(first) {
		t.Errorf("%d runs on pages, %d at once", len(seen), len(first))
	}

	code, out := h.command("schedules", "list")
	for _, want := range []string{"dead, ", " in a row", "LAST RUN", "✗ no instance runs"} {
		if code != exitFine || !strings.Contains(out, want) {
			t.Errorf("exit %d, without %q: %s", code, want, out)
		}
	}
	if code, out, _ := h.audit("sad"); code != exitFailed || !strings.Contains(out, "failing") {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, out, _ := h.audit("beat"); code != exitFine && !strings.Contains(out, "overdue") {
		t.Errorf("of the other: exit %d: %s", code, out)
	}
	for args, want := range map[string]string{
		"runs sad --limit 0": "limit", "runs sad --after x": "not a cursor", "runs sat": "did you mean sad?", "show sad": "last runs",
	} {
		if _, out := h.command(append([]string{"schedules"}, strings.Fields(args)...)...); !strings.Contains(out, want) {
			t.Errorf("%s: %s", args, out)
		}
	}
}
