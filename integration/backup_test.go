package integration

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// A backup of a running Redis is restored on a fresh server, as docs/operations.md says: schedules, pauses and tasks are there, and the beat
// goes on, on its grid. The backup does not know what ran after it: a slot of that time may run once more, with a larger fence.
func TestBackup_isRestoredOnAnotherServer(t *testing.T) {
	t.Parallel()
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("no redis-cli here")
	}
	w, srv := privateWorld(t)
	w.Must("schedules", "apply", w.File("hand.yaml", "[{name: hand, cron: '0 0 1 1 *', task: echo}]"))
	w.Must("schedules", "pause", "hand", "--reason", "the supplier moves")
	w.Must("enqueue", "echo", "--id", "later", "--in", "1h")
	config := w.Config("onbeat.yaml", "concurrency: 10\nlease: 3s\n", w.Beat("a", beatEvery))
	p := w.Serve("one", config)
	p.Said("leads")
	w.Grow(20, "nothing arrives")

	file := filepath.Join(t.TempDir(), "onbeat.rdb")
	if out, err := exec.CommandContext(t.Context(), cli, "-u", srv.URL(), "--rdb", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	saved := time.Now()
	w.Grow(20, "the beat stops at a backup")
	p.Stop()
	srv.Kill()

	url := testredis.Restored(t, file).URL()
	restored := time.Now()
	q := w.Serve("two", config, "--redis", url)
	q.Said("leads")
	w.Grow(20, "the beat does not go on")
	if out := w.Must("schedules", "show", "hand", "--redis", url); !strings.Contains(out, "the supplier moves") {
		t.Errorf("the pause is gone: %s", out)
	}
	if out := w.Must("tasks", "show", "later", "--redis", url); !strings.Contains(out, "planned") {
		t.Errorf("the task is gone: %s", out)
	}
	q.Stop()

	again := 0
	var first int64
	for ms, runs := range rig.BySlot(t, w.Of("a")) {
		if first == 0 {
			first = ms
		}
		if (ms-first)%beatEvery.Milliseconds() != 0 {
			t.Errorf("slot %d is off the grid", ms)
		}
		if len(runs) == 1 {
			continue
		}
		again++
		if at := time.UnixMilli(ms); len(runs) > 2 || at.Before(saved.Add(-time.Second)) || at.After(restored) || runs[1].Fence <= runs[0].Fence {
			t.Errorf("slot %s ran again, and the backup is of %s: %s", at.Format("05.000"), saved.Format("05.000"), trial.Describe(runs))
		}
	}
	t.Logf("%d slots ran again", again)
}
