package integration

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// errUnreleased: there is nothing yet from which one could upgrade.
var errUnreleased = errors.New("there is no tag v*: nothing was released yet (or this is a shallow clone, which has no tags)")

// lastRelease is the program of the last tag.
var lastRelease = sync.OnceValues(func() (path string, err error) {
	tag, err := exec.Command("git", "describe", "--tags", "--match", "v*", "--abbrev=0").Output()
	if err != nil {
		return "", errUnreleased
	}
	return rig.BuildTag(strings.TrimSpace(string(tag)))
})

// The program of the last tag is rolled over by the program of this tree, and this one by that again. No slot is missed or
// doubled. Tasks that wait meanwhile run once, whichever program enqueued them. A dead task stays dead and a paused schedule
// paused, as both programs see them.
func TestUpgrade_fromTheLastTagAndBack(t *testing.T) {
	beginBuild(t, lastRelease)
	u := &upgrade{fleet: newFleet(t, "lease: 1s\n")}
	last, err := lastRelease()
	switch {
	case errors.Is(err, errUnreleased):
		t.Skip(err)
	case err != nil:
		t.Fatal("the program of the last tag:", err)
	}
	u.last, u.beats = last, u.beats[:5]
	was := u.of(last, "v1").up(1)
	u.goesOn(5)
	u.begins()
	u.enqueues(last, "before")
	u.enqueues(u.Binary(), "before-by-this")
	now := u.release("v2").rollout(was)
	u.wantKept()
	u.goesOn(testredis.Size(30, 100)) // longer than a leader pushes ahead, so that each program runs slots that it pushed itself too
	u.enqueues(last, "meanwhile")
	u.enqueues(u.Binary(), "meanwhile-by-this")
	again := u.of(last, "v3").rollout(now)
	u.wantKept()
	u.goesOn(testredis.Size(30, 100))
	u.wantTasks()
	u.ends(again)

	u.wantReigns("v1", "v2", "v3")
	for _, a := range u.Of("resting") {
		if a.Slot.After(u.rests) {
			t.Errorf("%s ran, %s after its schedule was paused", a.ID, a.Slot.Sub(u.rests))
		}
	}
	u.wantSteady("from the last tag to this tree and back", 0, fmt.Sprintf("%d tasks besides", len(u.tasks)))
}

// upgrade is a fleet whose first and third release are of the program of the last tag.
type upgrade struct {
	*fleet
	last  string
	tasks []string
	rests time.Time // when a schedule was paused
}

// of prepares a release of one of the programs.
func (u *upgrade) of(path, version string) *release {
	r := u.release(version)
	r.path = path
	return r
}

// begins makes one task die and one schedule pause, by the program of the last tag.
func (u *upgrade) begins() {
	u.Helper()
	u.mustAs(u.last, "schedules", "apply", u.File("resting.yaml", "schedules:\n"+u.Beat("resting", fleetEvery)))
	testredis.Eventually(u, 20*time.Second, func() bool { return len(u.Of("resting")) > 0 }, "what was applied does not run")
	u.mustAs(u.last, "schedules", "pause", "resting")
	u.rests = time.Now()
	u.mustAs(u.last, "enqueue", "http", "--id", "dead", "--max-attempts", "1",
		"--payload", fmt.Sprintf(`{"url":%q,"expect":[500]}`, u.Rec.URL("dead")))
	u.Arrived("dead")
	testredis.Eventually(u, 20*time.Second, func() bool { return contains(u.mustAs(u.last, "tasks", "list", "--state", "dead", "--json"), `"dead"`) }, "it does not die")
}

// enqueues adds a backlog by one of the programs: tasks that are due over the next seconds, every third with a key.
func (u *upgrade) enqueues(path, name string) {
	u.Helper()
	var lines strings.Builder
	for i := range 200 {
		id, key := fmt.Sprintf("%s-%03d", name, i), ""
		if i%3 == 0 {
			key = `,"key":"one at a time"`
		}
		u.tasks = append(u.tasks, id)
		fmt.Fprintf(&lines, `{"type":"http","id":%q,"in":"%dms","payload":%s%s}`+"\n", id, i*10, u.Payload("job"), key)
	}
	u.mustAs(path, "enqueue", "--file", u.File(name+".jsonl", lines.String()))
}

// wantKept fails unless the dead task is dead and the paused schedule paused, as each program tells it.
func (u *upgrade) wantKept() {
	u.Helper()
	for _, path := range []string{u.last, u.Binary()} {
		if out := u.mustAs(path, "tasks", "show", "dead", "--json"); !contains(out, `"dead"`) {
			u.Errorf("the dead task, by %s: %s", path, out)
		}
		if out := u.mustAs(path, "schedules", "show", "resting", "--json"); !contains(strings.ReplaceAll(out, " ", ""), `"paused":true`) {
			u.Errorf("the paused schedule, by %s: %s", path, out)
		}
	}
}

// wantTasks fails unless each task of the backlog arrives, once.
func (u *upgrade) wantTasks() {
	u.Helper()
	for _, id := range u.tasks {
		u.Arrived(id)
	}
	for _, id := range append(u.tasks, "dead") {
		if n := len(u.Task(id)); n != 1 {
			u.Errorf("%s arrived %d times: %s", id, n, trial.Describe(u.Task(id)))
		}
	}
}

// mustAs runs a command of one of the programs, which must succeed.
func (u *upgrade) mustAs(path string, args ...string) string {
	u.Helper()
	code, out, errs := u.TryAs(path, nil, args...)
	if code != 0 {
		u.Fatalf("%s %s: exit %d: %s%s", path, strings.Join(args, " "), code, out, errs)
	}
	return out
}
