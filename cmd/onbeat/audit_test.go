package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/internal/embedded"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// auditHouse is a namespace on a Redis of its own, in which one schedule ran for a while.
type auditHouse struct {
	*testing.T
	*inside
	url string
}

// auditNamespace is the namespace of each auditHouse.
const auditNamespace = "shop"

func newAuditHouse(t *testing.T) *auditHouse {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Options{InProcess: true, NoPassword: true}) // without a password, the shown URL can be passed on
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return &auditHouse{t, openInside(t, server.URL(), auditNamespace), server.URL()}
}

// beat runs the dispatcher until the schedule "beat" and the others given have ended several slots.
func (h *auditHouse) beat(others ...string) {
	h.Helper()
	h.beatEvery(50*time.Millisecond, 10, append(others, "beat")...)
}

func (h *auditHouse) beatEvery(d time.Duration, runs int, names ...string) {
	h.Helper()
	h.work(d, runs, func() {}, names...)
}

// work is beatEvery, and calls last while the dispatcher still runs.
func (h *auditHouse) work(d time.Duration, runs int, last func(), names ...string) {
	h.Helper()
	ctx, stop := context.WithCancel(h.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.inside.Run(ctx) }()
	was, err := h.Admin().Activity.Counts(h.Context())
	if err == nil {
		_, err = h.Admin().Tasks.Enqueue(h.Context(), []*task.Task{task.New("echo", nil)})
	}
	if err != nil {
		h.Fatal(err)
	}
	testredis.Eventually(h.T, time.Minute, func() bool {
		n, err := h.Admin().Activity.Counts(h.Context())
		return err == nil && n.Finished > was.Finished
	}, "an instance works, so that no slot is missed")
	s := producer.Schedule{Name: "beat", Rule: schedule.Rule{Every: d}, Task: "echo"}
	if _, err := h.Admin().Schedules.Apply(h.Context(), s); err != nil {
		h.Fatal(err)
	}
	testredis.Eventually(h.T, time.Minute, func() bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			page, err := h.Admin().Schedules.Runs(ctx, name, runs, "")
			return err != nil || len(page.Items) < runs
		})
	}, "the runs are in the history")
	last()
	stop()
	if err := <-ended; err != nil {
		h.Fatal(err)
	}
}

func (h *auditHouse) audit(args ...string) (code int, out, errs string) {
	h.Helper()
	var stdout, stderr bytes.Buffer
	args = append([]string{"audit", "--redis", h.url, "--namespace", auditNamespace}, args...)
	code = run(h.Context(), args, func(string) string { return "" }, strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestAudit_ofNothingSaysSo(t *testing.T) {
	t.Parallel()
	h := newAuditHouse(t)
	if code, out, errs := h.audit(); code != exitFailed || !strings.Contains(out, "nothing to audit") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if code, out, errs := h.audit("--json"); code != exitFailed || strings.TrimSpace(out) != `{"schedules":[]}` {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if code, _, errs := h.audit("never"); code != exitFailed || !strings.Contains(errs, "not found") {
		t.Errorf("of a schedule that is not there: exit %d: %s", code, errs)
	}
}

func TestAudit_refusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	h := newAuditHouse(t)
	for _, args := range [][]string{{"--since", "yesterday"}, {"--since", "-1h"}, {"--tolerance", "0s"}, {"--what"}, {"a", "b"}} {
		code, out, errs := h.audit(args...)
		if code != exitAsked || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d: %s%s; want 2 and one line", args, code, out, errs)
		}
	}
}

func TestAudit_exitsOneIfAPromiseBroke(t *testing.T) {
	t.Parallel()
	h := newAuditHouse(t)
	const cadence = 250 * time.Millisecond
	h.work(cadence, 4, func() { // a slot that nobody ran is overdue soon
		if _, err := h.Admin().Schedules.Pause(t.Context(), "beat", ""); err != nil {
			t.Fatal(err)
		}
		testredis.Eventually(t, time.Minute, func() bool {
			n, err := h.Admin().Activity.Counts(t.Context())
			return err == nil && n.Waiting+n.Later == 0 && n.Running == 0
		}, "the slots before the pause have run")
	}, "beat")
	code, out, errs := h.audit("beat")
	if code != exitFine || !strings.Contains(out, "✓") || !strings.Contains(out, "LAG p99") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}

	status, err := h.Admin().Schedules.Get(t.Context(), "beat")
	if err != nil {
		t.Fatal(err)
	}
	zero := status.Anchor.UnixMilli()
	var again []string // slots 0 to 2 ran again, and so did a time that is no slot
	for k := range 3 {
		line := fmt.Sprintf("beat@%d done 1 %d", zero+int64(k)*cadence.Milliseconds(), zero+2000)
		again = append(again, line, line) // twice: the first slots may have been missed
	}
	again = append(again, fmt.Sprintf("beat@%d done 1 %d", zero+7, zero+2000))
	err = h.rdb.XAdd(t.Context(), &redis.XAddArgs{
		Stream: h.queue.Keys().History, Values: []any{"runs", strings.Join(again, "\n"), "gen", 1},
	}).Err()
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs = h.audit()
	if code != exitFailed || !strings.Contains(out, "✗") || strings.Count(out, "duplicated: ran again") != 3 || !strings.Contains(out, "off_grid") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	code, out, _ = h.audit("--json")
	var said struct {
		Schedules []struct {
			Schedule   string `json:"schedule"`
			Duplicated int    `json:"duplicated"`
			Broken     bool   `json:"broken"`
		} `json:"schedules"`
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil {
		t.Fatal(err)
	}
	if code != exitFailed || len(said.Schedules) != 1 || said.Schedules[0].Duplicated != 3 || !said.Schedules[0].Broken {
		t.Errorf("exit %d: %s", code, out)
	}
}

// The audit shows lost writes beside the verdicts, which cannot know of them.
func TestAudit_saysWhatRedisLost(t *testing.T) {
	t.Parallel()
	h := newAuditHouse(t)
	h.beat()
	kept := time.Now().Add(-time.Minute)
	for _, fields := range [][]any{
		{"event", "lost writes", "instance", "a", "kept", kept.UnixMilli(), "known", kept.Add(time.Second).UnixMilli()},
		{"event", "lost writes", "instance", "a", "kept", 0, "known", kept.Add(2 * time.Second).UnixMilli()},
	} {
		if err := h.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: h.queue.Keys().Events, Values: fields}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	const layout = "2006-01-02T15:04:05.000Z"
	_, out, _ := h.audit()
	for _, want := range []string{
		"Redis lost its writes from " + kept.UTC().Format(layout) + " until ", " at the latest", " may have run twice",
		"Redis came back empty after " + kept.Add(2*time.Second).UTC().Format(layout),
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var events, errs bytes.Buffer
	run(t.Context(), []string{"events", "--redis", h.url, "--namespace", auditNamespace}, testEnv(), strings.NewReader(""), &events, &errs)
	if want := "kept=nothing known=" + kept.Add(2*time.Second).UTC().Format(layout); !strings.Contains(events.String(), want) {
		t.Errorf("no %q in\n%s%s", want, events.String(), errs.String())
	}
	_, out, _ = h.audit("--json")
	var said struct {
		LostWrites []audit.Loss `json:"lost_writes"`
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil || len(said.LostWrites) != 2 || !said.LostWrites[0].From.IsZero() {
		t.Errorf("%v: %s", err, out)
	}
}
