package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/onbeat/onbeat/internal/trial"
)

func TestDemo_losesNoBeat(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes 25 seconds")
	}
	for name, args := range map[string][]string{"redis-server": nil, "in-process": {"--in-process"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if args == nil {
				needServer(t)
			}
			temp := t.TempDir()
			p := startProgram(t, t.TempDir(), []string{"TMPDIR=" + temp}, append([]string{"demo", "--json"}, args...)...)
			code := p.exit(demoLimit)
			var v demoVerdict
			if err := json.Unmarshal([]byte(p.out.String()), &v); err != nil {
				t.Fatalf("exit %d: %v", code, err)
			}
			if code != exitFine || !v.OK || v.Missed+v.Duplicated+v.Early+v.OffGrid > 0 || !v.Audit {
				t.Errorf("exit %d, %+v", code, v)
			}
			if v.Slots < 20 {
				t.Errorf("%d slots in %.1f s, want at least 20", v.Slots, v.Seconds)
			}
			wantNothingLeft(t, temp)
		})
	}
}

func TestDemo_takesEverythingAwayWhenInterrupted(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	p := startProgram(t, t.TempDir(), []string{"TMPDIR=" + temp}, "demo")
	p.says("v2 is rolled out")
	if exec.Command("test", "-d", "/proc/self").Run() == nil && len(childrenWith(t, temp)) == 0 {
		t.Error("no child is found while the demo runs: the test sees nothing")
	}
	p.interrupt()
	if code := p.exit(10 * time.Second); code != exitFailed {
		t.Errorf("exit %d, want %d", code, exitFailed)
	}
	if text := p.errs.String(); !strings.Contains(text, "interrupted") || strings.Count(text, "\n") != 1 {
		t.Errorf("stderr = %q, want one line", text)
	}
	wantNothingLeft(t, temp)
}

// childrenWith lists processes, where /proc has them, whose command line names a folder.
func childrenWith(t *testing.T, dir string) (found []string) {
	t.Helper()
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), dir) {
			found = append(found, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}

func wantNothingLeft(t *testing.T, temp string) {
	t.Helper()
	if left := childrenWith(t, temp); len(left) > 0 {
		t.Errorf("processes left behind: %q", left)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "onbeat-*")); len(left) > 0 {
		t.Errorf("files left behind: %q", left)
	}
}

// demoBeats are arrivals of slots 0 to n-1, a second apart, each 2 ms after its slot.
func demoBeats(n int) (list []trial.Arrival) {
	for i := range n {
		slot := time.UnixMilli(1_700_000_000_000).Add(time.Duration(i) * demoEvery)
		list = append(list, trial.Arrival{Release: "v1", Slot: slot, At: slot.Add(2 * time.Millisecond), Attempt: 1})
	}
	return list
}

func TestDemoLoss_measuresHowLongTheBeatPaused(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{2 * time.Millisecond, 2340 * time.Millisecond} {
		list := demoBeats(6)
		list[3].At = list[3].Slot.Add(late)
		slices.Reverse(list) // beats that were held up arrive in any order
		l := demoLoss{trial.SigKill, list[3].Slot.Add(demoEvery / 2)}
		v := &demoVerdict{}
		v.lost([]demoLoss{l, {trial.SigStop, l.at.Add(demoEvery)}}, list)
		if v.AfterKill != trial.Millis(late) || v.AfterStop != 2 {
			t.Errorf("%s late: %+v", late, v)
		}
	}
}

func demoShowOf(list []trial.Arrival, w io.Writer) *demoShow {
	return &demoShow{arrivals: func() []trial.Arrival { return list }, began: time.Now(), w: w}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

func TestDemoShow_redrawsInPlaceWithinEightyColumns(t *testing.T) {
	t.Parallel()
	list := demoBeats(30)
	list[20].Release, list[21].Release = "v2", "v2"
	list[20].At = list[20].Slot.Add(time.Second)
	var out lockedBuffer
	var lanes []*demoLane
	for _, release := range []string{"v1", "v2", "v3"} {
		lanes = append(lanes, &demoLane{release: release, state: "stands by"})
	}
	s := demoShowOf(list, &terminal{w: &out})
	s.lanes, s.live, s.style = lanes, true, style{on: true}
	s.draw()
	height := s.height
	s.act(strings.Repeat("what is done ", 8), strings.Repeat("why it matters ", 8))
	s.draw()
	s.end()
	s.draw() // after the end draw does nothing
	if s.height != height {
		t.Errorf("the picture went from %d to %d lines", height, s.height)
	}
	text := out.String()
	if n := strings.Count(text, "\n"); n != 4*height {
		t.Errorf("%d lines drawn, want 4 pictures of %d", n, height)
	}
	for line := range strings.SplitSeq(escapes.ReplaceAllString(text, ""), "\n") {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if plain := escapes.ReplaceAllString(text, ""); !strings.Contains(plain, "◐●") || !strings.Contains(plain, "●●··●●") {
		t.Errorf("the beats are not drawn:\n%s", plain)
	}
}
