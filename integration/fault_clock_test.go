package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
)

// offsetVariable shifts the clock of a program that shiftedBinary built, by so many seconds.
const offsetVariable = "ONBEAT_TEST_CLOCK"

// shiftedBinary is the program under test, built with a time.Now that is off by as much as the environment says. libfaketime
// cannot do it: it replaces functions of libc, and Go asks the kernel without them.
var shiftedBinary = sync.OnceValues(func() (string, error) {
	const call = "sec, nsec, mono := runtimeNow()"
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	path := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), call); n != 1 {
		return "", fmt.Errorf("%s has %q %d times, want once: this Go has another time.Now", path, call, n)
	}
	dir, err := os.MkdirTemp("", "onbeat-clock-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	shifted := filepath.Join(dir, "time.go.txt")
	text := strings.Replace(string(source), call, call+"\n\tsec += testOffset", 1) + `
var testOffset = func() int64 {
	text, _ := syscall.Getenv("` + offsetVariable + `")
	n, _ := atoi(text)
	return int64(n)
}()
`
	text = strings.Replace(text, "\nimport (\n", "\nimport (\n\t\"syscall\"\n", 1)
	if err := os.WriteFile(shifted, []byte(text), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: shifted}})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	return rig.Build("onbeat-shifted", "-overlay", list)
})

// serveShifted starts an instance whose clock is off, and proves by its own log that it is.
func (w *world) serveShifted(off time.Duration, name, config string, args ...string) *rig.Process {
	w.Helper()
	path, err := shiftedBinary()
	if err != nil {
		w.Fatal(err)
	}
	began := time.Now()
	p := w.ServeAs(path, []string{offset(off)}, name, config, args...)
	p.Said("starting")
	var line struct {
		Time time.Time `json:"time"`
	}
	first, _, _ := strings.Cut(p.Log(), "\n")
	if err := json.Unmarshal([]byte(first), &line); err != nil {
		w.Fatalf("%s: %v in %q", name, err, first)
	}
	if was := line.Time.Sub(began); (was - off).Abs() > 20*time.Second {
		w.Fatalf("the clock of %s is off by %s, want %s: this proves nothing", name, was, off)
	}
	return p
}

func offset(off time.Duration) string {
	return fmt.Sprintf("%s=%d", offsetVariable, int(off.Seconds()))
}

// Two instances, one with a clock an hour ahead and one an hour behind, hand the lead to each other. Every slot runs once, at
// its own time by the true clock, and none early. A task that is enqueued with a wrong clock runs at the time asked for.
func TestPromise6_aClockWrongByAnHourChangesNothing(t *testing.T) {
	testredis.OnlyInASoak(t)
	w := newWorld(t)
	if _, err := shiftedBinary(); err != nil {
		t.Fatal(err)
	}
	cron := fmt.Sprintf("  - name: cron\n    cron: \"* * * * * *\"\n    task: http\n    payload: {url: %q}\n", w.Rec.URL("cron"))
	config := w.Config("onbeat.yaml", "concurrency: 20\nlease: 1s\n", w.Beat("a", beatEvery), w.Beat("b", time.Second), cron)
	began := time.Now()
	var live []*rig.Process
	for i, off := range []time.Duration{time.Hour, -time.Hour, 0} {
		name := fmt.Sprintf("off-%d", i)
		p := w.serveShifted(off, name, config, "--release", name)
		p.Said("leads")
		w.Grow(testredis.Size(10, 100), "nothing arrives from "+name)
		path, _ := shiftedBinary()
		asked := time.Now()
		id := "in-" + name
		code, out, errs := w.TryAs(path, []string{offset(-off)}, "enqueue", "http", "--id", id, "--in", "1s", "--payload", w.Payload("in"))
		if code != 0 {
			t.Fatalf("enqueue: exit %d: %s%s", code, out, errs)
		}
		took := time.Since(asked)
		came := w.Arrived(id).At.Sub(asked)
		if came < time.Second || came > time.Second+took+2*time.Second {
			t.Errorf("a task in 1s, of a clock off by %s, came after %s", -off, came)
		}
		t.Logf("off by %s: a task in 1s came after %s", off, came.Round(time.Millisecond))
		if i%2 == 1 {
			p.Kill()
			continue
		}
		live = append(live, p)
	}
	var ended time.Time
	for _, p := range live {
		ended = time.Now()
		p.Stop()
	}
	for _, name := range []string{"a", "b", "cron"} {
		list := w.Of(name)
		if len(list) == 0 || list[0].Slot.Before(began.Add(-2*time.Second)) {
			t.Fatalf("%s: %d arrived, the first slot %v", name, len(list), list)
		}
		for _, a := range list {
			if late := a.At.Sub(a.Slot); late > 4*time.Second {
				t.Errorf("%s arrived %s after its slot", a.ID, late)
			}
		}
		every := time.Second
		if name == "a" {
			every = beatEvery
		}
		w.WantEverySlot(name, every, true)
	}
	w.WantAuditAgrees("b", "cron")
	w.wantBeats("clocks of two instances an hour ahead and an hour behind", ended, []string{"a"})
}
