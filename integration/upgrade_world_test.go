package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/testredis"
)

// earlierRelease is the release from which the upgrade to this tree is tried, and to which it is rolled back. Until there
// are releases it is a commit; from then on it is the last of them.
const earlierRelease = "43df4da4920b6a3af475510ac8a609856f184f5b"

var earlierBinary = sync.OnceValues(func() (string, error) { return rig.BuildAt(earlierRelease) })

// upgradeLease is short, because a leader pushes slots two and a half leases ahead. Each term should be longer than that, so
// that each program runs slots that it pushed itself, and slots that the other pushed.
const (
	upgradeLease = 1500 * time.Millisecond
	pushedAhead  = 2*upgradeLease + upgradeLease/2
)

// program is one of the two builds, by its name in messages.
type program struct{ name, path string }

func (p program) String() string { return p.name }

// upgrade is a fleet whose releases are of two programs: that of the earlier release, and that of this tree.
type upgrade struct {
	*fleet
	old, next program

	tasks *httptest.Server // where one-off tasks go
	steps []step
	jobs  []job

	broken map[string]bool                         // faults that an audit has reported, so that no later step reports them again
	audits struct{ old, next map[string]verdicts } // of each program, when the last release had stopped
}

// step is an operation of the test, and when it began.
type step struct {
	since time.Time
	what  string
}

func newUpgrade(t *testing.T, head string) *upgrade {
	t.Helper()
	w := newWorld(t)
	path, err := earlierBinary()
	switch {
	case errors.Is(err, rig.ErrNoHistory) && os.Getenv("ONBEAT_REQUIRE_REAL") != "1":
		t.Skip(err)
	case err != nil:
		t.Fatal("the program of the earlier release:", err)
	}
	u := &upgrade{broken: map[string]bool{}, fleet: &fleet{world: w, head: fmt.Sprintf("concurrency: 50\nlease: %s\n%s", upgradeLease, head)}}
	u.old, u.next = program{"old program (" + earlierRelease[:7] + ")", path}, program{"new program", w.Binary()}
	if said := u.must(u.old, "version"); !contains(said, earlierRelease[:7]) {
		t.Fatalf("the %s says that its version is %q: this proves nothing", u.old, said)
	}
	u.tasks = httptest.NewServer(http.HandlerFunc(u.receive))
	t.Cleanup(u.tasks.Close)
	return u
}

// receive makes the recorder note a run. For ?fails=N it answers 503 until N attempts have failed, with ?again=S as
// Retry-After.
func (u *upgrade) receive(w http.ResponseWriter, req *http.Request) {
	fails, _ := strconv.Atoi(req.URL.Query().Get("fails"))
	if attempt, _ := strconv.Atoi(req.Header.Get("Onbeat-Attempt")); attempt <= fails {
		w = refusal{w, req.URL.Query().Get("again")}
	}
	u.Rec.ServeHTTP(w, req)
}

// refusal answers 503 in place of any status.
type refusal struct {
	http.ResponseWriter
	again string
}

func (r refusal) WriteHeader(int) {
	if r.again != "" {
		r.Header().Set("Retry-After", r.again)
	}
	r.ResponseWriter.WriteHeader(http.StatusServiceUnavailable)
}

// payload returns the payload of a task whose runs end as a query says.
func (u *upgrade) payload(query string) json.RawMessage {
	text, err := json.Marshal(map[string]string{"url": u.tasks.URL + "/" + query})
	if err != nil {
		u.Fatal(err)
	}
	return text
}

// step notes what the test does next.
func (u *upgrade) step(format string, args ...any) {
	s := step{time.Now(), fmt.Sprintf("step %d, %s", len(u.steps)+1, fmt.Sprintf(format, args...))}
	u.steps = append(u.steps, s)
	u.Log(s.what)
}

// during returns the step in which a moment lies.
func (u *upgrade) during(at time.Time) string {
	what := "before the first step"
	for _, s := range u.steps {
		if s.since.After(at) {
			break
		}
		what = s.what
	}
	return what
}

// now returns the present step.
func (u *upgrade) now() string { return u.during(time.Now()) }

// try runs a command of one of the programs.
func (u *upgrade) try(p program, args ...string) (code int, stdout, stderr string) {
	u.Helper()
	return u.TryAs(p.path, nil, args...)
}

// must runs a command that must succeed.
func (u *upgrade) must(p program, args ...string) string {
	u.Helper()
	code, out, errs := u.try(p, args...)
	if code != 0 {
		u.Fatalf("%s: the %s fails: onbeat %s: exit %d: %s%s", u.now(), p, strings.Join(args, " "), code, out, errs)
	}
	return out
}

// read runs a command that prints JSON.
func (u *upgrade) read(p program, into any, args ...string) {
	u.Helper()
	out := u.must(p, append(args, "--json")...)
	if err := json.Unmarshal(asNow([]byte(out), args), into); err != nil {
		u.Fatalf("%s: the %s: onbeat %s: %v in %q", u.now(), p, strings.Join(args, " "), err, out)
	}
}

// apply makes or changes schedules by hand, and returns what the program did by its own account, by name.
func (u *upgrade) apply(p program, schedules ...string) map[string]string {
	u.Helper()
	file := u.File(fmt.Sprintf("apply-%d.yaml", time.Now().UnixNano()), "schedules:\n"+strings.Join(schedules, ""))
	var said []struct{ Name, Result string }
	u.read(p, &said, "schedules", "apply", file)
	did := map[string]string{}
	for _, s := range said {
		did[s.Name] = s.Result
	}
	return did
}

// crew is the replicas of one release of one of the programs.
type crew struct {
	*upgrade
	program
	version  string
	replicas []*rig.Process
}

func (u *upgrade) crew(p program, version string) *crew {
	return &crew{upgrade: u, program: p, version: version}
}

func (c *crew) String() string { return c.version + " of the " + c.name }

// up starts n replicas, each when the one before is ready.
func (c *crew) up(n int) *crew {
	c.Helper()
	config := c.config()
	for range n {
		p := c.ServeAs(c.path, nil, fmt.Sprintf("%s, replica %d", c, len(c.replicas)+1), config, "--release", c.version)
		c.replicas = append(c.replicas, p)
		p.Said("ready")
	}
	return c
}

// rollout replaces the replicas of another release one by one: each new one is up before an old one gets SIGTERM.
func (c *crew) rollout(from *crew) *crew {
	c.Helper()
	c.step("%s rolls over %s", c, from)
	for _, p := range from.replicas {
		anyOffset()
		c.up(1)
		anyOffset()
		p.Stop()
	}
	return c
}

// kill ends the only replica with SIGKILL.
func (c *crew) kill() {
	c.Helper()
	c.step("%s is killed", c)
	c.replicas[0].Kill()
}

// ends stops the last release, and audits at once: two seconds later slots are overdue, with no instance to run them.
func (u *upgrade) ends(last *crew) {
	u.Helper()
	u.step("%s, the last, stops", last)
	u.ended = time.Now()
	for _, p := range last.replicas {
		p.Stop()
	}
	u.audits.old, u.audits.next = u.audited(u.old), u.audited(u.next)
}

// whose names a release that the recorder saw, with its program. Releases of the old program have odd numbers.
func (u *upgrade) whose(version string) string {
	if n, err := strconv.Atoi(strings.TrimPrefix(version, "v")); err == nil && n%2 == 1 {
		return version + " of the " + u.old.name
	}
	return version + " of the " + u.next.name
}

// eventually waits for a condition, and names the present step if it does not come true.
func (u *upgrade) eventually(done func() bool, format string, args ...any) {
	u.Helper()
	testredis.Eventually(u, 30*time.Second, done, "%s: %s", u.now(), fmt.Sprintf(format, args...))
}
