package integration

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// All processors are kept busy by other programs while three replicas play schedules and take tasks, with the default lease.
// Nobody is killed or frozen, so each suspicion is wrong. The test counts the suspicions. They do no harm: no slot is missed or doubled.
//
// ONBEAT_BUSY says for how long. A soak takes an hour; without either the test is skipped, because it would shake those that
// run beside it.
func TestSuspicion_isRareOnABusyMachineAndHarmless(t *testing.T) {
	length := busyFor(t)
	f := newFleet(t, "")
	live := f.release("v1").up(3)
	f.goesOn(20)
	hogs := f.hogs(2 * runtime.NumCPU())
	begun := time.Now()
	for n := 0; time.Since(begun) < length; n++ {
		f.Must("enqueue", "--file", f.File("load.jsonl", f.load(n)))
		time.Sleep(time.Second) // the pace of the load
	}
	busy := time.Since(begun)
	for _, p := range hogs {
		p.Kill()
	}
	suspected, wrongly := f.events("suspected"), f.events("suspected wrongly")
	lost, terms := f.events("lost"), f.events("leader")
	f.goesOn(5)
	f.ends(live)
	for _, e := range append(suspected, lost...) {
		t.Logf("%s %s %v", e.At.Format(time.TimeOnly), e.Event, e.Fields)
	}
	got := f.Judge(fleetEvery, f.ended.Add(-2*fleetEvery), f.beats...) // the history does not reach back for an hour of them
	f.WantWhole("the beats", got)
	f.Row(fmt.Sprintf("all processors busy for %s, nobody killed or frozen", busy.Round(time.Second)), got,
		fmt.Sprintf("%d programs that only compute on %d processors", len(hogs), runtime.NumCPU()),
		fmt.Sprintf("%d suspected, %d of them found to live; %d leases lost; %d terms", len(suspected), len(wrongly), len(lost), len(terms)))
}

// busyFor returns how long the machine is to be busy.
func busyFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("ONBEAT_BUSY")
	switch {
	case text == "" && testredis.Soak():
		return time.Hour
	case text == "":
		t.Skip("ONBEAT_BUSY says for how long to keep the machine busy; a soak does it for an hour")
	}
	length, err := time.ParseDuration(text)
	if err != nil || length <= 0 {
		t.Fatalf("ONBEAT_BUSY is %q: write how long, for example 10m", text)
	}
	return length
}

// hogs starts programs that only compute.
func (f *fleet) hogs(n int) (list []*trial.Process) {
	f.Helper()
	for i := range n {
		p, err := trial.Start(fmt.Sprintf("hog %d", i+1), os.DevNull, trial.Program{Path: "/bin/sh", Args: []string{"-c", "while :; do :; done"}})
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(p.Kill)
		list = append(list, p)
	}
	return list
}

// load is a file of tasks that are due now.
func (f *fleet) load(n int) string {
	lines := make([]string, 200)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"type":"http","id":"load-%d-%d","payload":%s}`, n, i, f.Payload("load"))
	}
	return strings.Join(lines, "\n") + "\n"
}
