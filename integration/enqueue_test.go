package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/testredis"
)

// 5,000 tasks over 5 s from a file: each delivered once; the same file again adds nothing and says so.
func TestEnqueueFile_deliversEachOnceAndAddsNothingTheSecondTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.Serve("one", w.Config("onbeat.yaml", "concurrency: 50\n"))
	server.Said("leads")

	var lines strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&lines, `{"type":"http","id":"job-%04d","in":"%dms","payload":{"url":%q}}`+"\n", i, i, w.Rec.URL("job"))
	}
	file := w.File("tasks.jsonl", lines.String())
	began := time.Now()
	code, out, errs := w.Try("enqueue", "--file", file)
	if code != 0 || !strings.Contains(out+errs, "enqueued 5000") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	testredis.Eventually(t, 60*time.Second, func() bool { return w.Rec.Count() >= 5000 }, "not all were delivered")
	t.Logf("the last of 5,000 tasks over 5 s arrived after %s", time.Since(began))

	code, out, errs = w.Try("enqueue", "--file", file)
	if code != 0 || !strings.Contains(out+errs, "enqueued 0, 5000 already there") {
		t.Errorf("the same file again: exit %d: %s%s", code, out, errs)
	}
	server.Stop()
	seen := map[string]int{}
	for _, a := range w.Rec.Arrivals() {
		if seen[a.ID]++; seen[a.ID] > 1 {
			t.Errorf("%s was delivered %d times", a.ID, seen[a.ID])
		}
		if a.At.Before(a.Slot) {
			t.Errorf("%s arrived %s early", a.ID, a.Slot.Sub(a.At))
		}
	}
	if len(seen) != 5000 {
		t.Errorf("%d tasks were delivered, want 5000", len(seen))
	}
}

// A bad line is named, and nothing of the file is enqueued. With --skip-bad the other lines are enqueued, and the command
// still exits with an error.
func TestEnqueueFile_refusesAFileWithABadLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := `{"type":"echo","payload":{}}` + "\n"
	file := w.File("tasks.jsonl", strings.Repeat(good, 6)+`{"type":"echo","inn":"5s"}`+"\n"+good)
	code, out, errs := w.Try("enqueue", "--file", file)
	if code != 2 || !strings.Contains(errs, "tasks.jsonl:7") || strings.Count(errs, "\n") != 1 {
		t.Errorf("exit %d, stdout %q, stderr %q: want exit 2 and one line that names line 7", code, out, errs)
	}
	if list := strings.TrimSpace(w.Must("tasks", "list", "--json")); strings.Contains(list, `"echo"`) {
		t.Errorf("something was enqueued: %s", list)
	}
	code, out, errs = w.Try("enqueue", "--file", file, "--skip-bad")
	if code != 1 || !strings.Contains(errs, "tasks.jsonl:7") || !strings.Contains(out+errs, "enqueued 7") {
		t.Errorf("--skip-bad: exit %d: %s%s", code, out, errs)
	}
}
