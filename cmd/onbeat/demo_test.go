package main

import (
	"encoding/json"
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
	"github.com/onbeat/onbeat/schedule"
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
			if v.Slots < 20 || v.Seconds > 40 {
				t.Errorf("%d slots in %.1f s, want at least 20 in at most 40 s", v.Slots, v.Seconds)
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
	if left, _ := filepath.Glob(filepath.Join(temp, "onbeat-demo-*")); len(left) > 0 {
		t.Errorf("files left behind: %q", left)
	}
}

// demoBeats are arrivals of slots 0 to n-1, a second apart, each 2 ms after its slot.
func demoBeats(n int) (schedule.Grid, []trial.Arrival) {
	zero := time.UnixMilli(1_700_000_000_000).UTC()
	grid, _ := schedule.Rule{Every: demoEvery}.Grid(zero)
	var list []trial.Arrival
	for i := range n {
		slot := zero.Add(time.Duration(i) * demoEvery)
		list = append(list, trial.Arrival{Release: "v1", Slot: slot, At: slot.Add(2 * time.Millisecond), Attempt: 1})
	}
	return grid, list
}

func TestJudgeDemo_countsWhatTheRecorderSaw(t *testing.T) {
	t.Parallel()
	type counts struct{ slots, missed, duplicated, early, offGrid, heldUp int }
	for name, tt := range map[string]struct {
		change func([]trial.Arrival) []trial.Arrival
		want   counts
	}{
		"every slot once": {func(l []trial.Arrival) []trial.Arrival { return l }, counts{slots: 10}},
		"one missed": {
			func(l []trial.Arrival) []trial.Arrival { return slices.Delete(l, 4, 5) }, counts{slots: 10, missed: 1},
		},
		"one twice, though the second says that it is attempt 2": {
			func(l []trial.Arrival) []trial.Arrival {
				again := l[4]
				again.Attempt = 2
				return append(l, again)
			}, counts{slots: 10, duplicated: 1},
		},
		"one early": {
			func(l []trial.Arrival) []trial.Arrival {
				l[4].At = l[4].Slot.Add(-time.Millisecond)
				return l
			}, counts{slots: 10, early: 1},
		},
		"one off the grid, in place of one on it": {
			func(l []trial.Arrival) []trial.Arrival {
				l[4].Slot = l[4].Slot.Add(time.Millisecond)
				return l
			}, counts{slots: 10, missed: 1, offGrid: 1},
		},
		"one held up": {
			func(l []trial.Arrival) []trial.Arrival {
				l[7].At = l[7].Slot.Add(900 * time.Millisecond)
				return l
			}, counts{slots: 10, heldUp: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			grid, list := demoBeats(10)
			deed := demoTrial{from: list[6].Slot.Add(demoEvery / 2), to: list[7].Slot.Add(900 * time.Millisecond)}
			var trials []demoTrial
			if tt.want.heldUp > 0 {
				trials = append(trials, deed)
			}
			v := judgeDemo(grid, tt.change(list), trials)
			got := counts{v.Slots, v.Missed, v.Duplicated, v.Early, v.OffGrid, v.HeldUp}
			if got != tt.want {
				t.Errorf("%+v, want %+v; %q", got, tt.want, v.Wrong)
			}
			if bad := got.missed + got.duplicated + got.early + got.offGrid; (bad > 0) != (len(v.Wrong) > 0) {
				t.Errorf("%d are bad, and it says %q", bad, v.Wrong)
			}
			if tt.want.heldUp > 0 && (v.MaxHeldUp != 900 || v.Max != 2) {
				t.Errorf("held up by %v, the rest by at most %v; want 900, 2", v.MaxHeldUp, v.Max)
			}
		})
	}
	if v := judgeDemo(schedule.Grid{}, nil, nil); len(v.Wrong) == 0 {
		t.Error("a demo in which nothing arrived is fine")
	}
}

func recorderOf(list []trial.Arrival) *trial.Recorder {
	r := &trial.Recorder{}
	r.Note(list...)
	return r
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

func TestDemoShow_redrawsInPlaceWithinEightyColumns(t *testing.T) {
	t.Parallel()
	_, list := demoBeats(30)
	list[20].Release, list[21].Release = "v2", "v2"
	list[20].At = list[20].Slot.Add(time.Second)
	var out lockedBuffer
	d := &demo{rec: recorderOf(list), began: time.Now()}
	for _, release := range []string{"v1", "v2", "v3"} {
		d.lanes = append(d.lanes, &demoLane{release: release, state: "stands by"})
	}
	s := &demoShow{d: d, w: &terminal{w: &out}, live: true, style: style{on: true}}
	s.draw()
	height := s.height
	s.act(strings.Repeat("what is done ", 8), strings.Repeat("why it matters ", 8))
	s.draw()
	s.end()
	s.draw() // after the end nothing is drawn
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

func TestDemoShow_tellsBeatsInLinesWhereNothingCanBeRedrawn(t *testing.T) {
	t.Parallel()
	_, list := demoBeats(5)
	list[4].Release = "v2"
	var out lockedBuffer
	s := &demoShow{d: &demo{rec: recorderOf(list), began: time.Now()}, w: &out}
	s.draw()
	s.act("kill -9", "a crash")
	s.end()
	for _, want := range []string{"beats 0 to 3 on v1, at most 2.0 ms", "beat 4 on v2", "kill -9\n        a crash"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}
