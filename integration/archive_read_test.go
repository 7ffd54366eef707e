package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
)

// forgetful is a namespace whose Redis soon has nothing of its first seconds any more, beside an archive.
type forgetful struct {
	*world
	rdb      *redis.Client
	database *testpostgres.Server
	config   string   // names the archive
	env      []string // does too
	first    event    // that happened
	pauses   int      // of a schedule: each is an event
	ran      []string // tasks of quick that Redis has forgotten
}

// newForgetful starts an instance, and waits until Redis has dropped what the archive has.
func newForgetful(t *testing.T) *forgetful {
	t.Helper()
	w, srv := privateWorld(t, "--stream-node-max-entries", "10") // Redis trims whole nodes
	f := &forgetful{world: w, rdb: srv.Client(), database: testpostgres.Private(t)}
	url := f.database.Database()
	f.env = []string{"ONBEAT_ARCHIVE=" + url}
	f.config = w.Config("archive.yaml", fmt.Sprintf("keep: {history: 10, events: 50}\narchive: {url: %q}", url),
		w.Beat("quick", fleetEvery, "missed: all"), w.Beat("idle", 24*time.Hour))
	w.Serve("1", f.config).Said("ready")
	w.Must("--config", f.config, "enqueue", "http", "--id", "job", "--keep", "0s", "--payload", w.Payload("job"))
	ran := w.Arrived("job").At
	f.first = f.events("leader")[0]
	testredis.Eventually(t, time.Minute, func() bool { return f.oldest("history").After(ran.Add(time.Second)) }, "Redis keeps its history")
	testredis.Eventually(t, time.Minute, func() bool {
		w.Must("--config", f.config, "schedules", "pause", "idle")
		w.Must("--config", f.config, "schedules", "resume", "idle")
		f.pauses++
		return f.oldest("events").After(f.first.At)
	}, "Redis keeps its events")
	for oldest, list := f.oldest("history"), w.Of("quick"); len(list) > 0 && list[0].At.Before(oldest.Add(-time.Second)); list = list[1:] {
		f.ran = append(f.ran, list[0].ID)
	}
	return f
}

// oldest is the time of the oldest entry that a stream of Redis has.
func (f *forgetful) oldest(stream string) time.Time {
	f.Helper()
	list, err := f.rdb.XRangeN(f.Context(), "onbeat:{"+f.NS+"}:"+stream, "-", "+", 1).Result()
	if err != nil || len(list) == 0 {
		f.Fatalf("%s: %v, %v", stream, list, err)
	}
	return history.At(list[0].ID)
}

// A reader is how somebody calls the program.
type reader struct {
	*forgetful
	flags, env []string
}

func (r reader) try(args ...string) (code int, stdout, stderr string) {
	r.Helper()
	return r.TryAs(r.Binary(), r.env, append(r.flags, args...)...)
}

// read runs a command that must succeed, and reads its JSON.
func (r reader) read(to any, args ...string) {
	r.Helper()
	code, out, errs := r.try(append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), to); err != nil || code != 0 {
		r.Fatalf("onbeat %v: exit %d, %v: %s%s", args, code, err, out, errs)
	}
}

// unknown counts the slots whose fate an audit cannot tell.
func (r reader) unknown() int {
	r.Helper()
	var report struct {
		Schedules []struct {
			Unknown int `json:"unknown"`
		}
	}
	if r.read(&report, "audit", "quick", "--since", "2h"); len(report.Schedules) != 1 {
		r.Fatalf("an audit of one schedule reports on %d", len(report.Schedules))
	}
	return report.Schedules[0].Unknown
}

// lacks counts the slots that ran long ago and that the runs of the schedule leave out.
func (r reader) lacks() int {
	r.Helper()
	var runs struct {
		Items []struct {
			Task    string       `json:"task"`
			Outcome history.Word `json:"outcome"`
		}
	}
	r.read(&runs, "schedules", "runs", "quick", "--limit", "10000")
	done := map[string]bool{}
	for _, x := range runs.Items {
		done[x.Task] = done[x.Task] || x.Outcome == history.Done
	}
	return len(slices.DeleteFunc(slices.Clone(r.ran), func(id string) bool { return done[id] }))
}

// knowsTheStart reports whether the events go back to the first, and counts the pauses among them.
func (r reader) knowsTheStart() (first bool, pauses int) {
	r.Helper()
	var list struct{ Items []event }
	r.read(&list, "events", "--since", "2h", "--limit", "10000")
	for _, e := range list.Items {
		first = first || e.Event == r.first.Event && e.At.Equal(r.first.At)
		if e.Event == "schedule paused" {
			pauses++
		}
	}
	return first, pauses
}

// Commands answer from the archive what Redis no longer has. Without an archive they do not, and while the archive is away they say so.
func TestArchive_answersForWhatRedisNoLongerHas(t *testing.T) {
	t.Parallel()
	f := newForgetful(t)
	byConfig, byEnv, without := reader{f, []string{"--config", f.config}, nil}, reader{f, nil, f.env}, reader{f, nil, nil}
	for name, r := range map[string]reader{"--config": byConfig, "ONBEAT_ARCHIVE": byEnv} {
		t.Run(name, func(t *testing.T) { r.on(t).answers() })
	}
	t.Run("no archive", func(t *testing.T) { without.on(t).answersLess() })
	f.database.Stop()
	t.Run("the database is away", func(t *testing.T) {
		byConfig.on(t).saysThatItIsAway()
		byEnv.on(t).saysThatItIsAway()
		without.on(t).answersLess()
	})
}

// on is the reader in a part of a test.
func (r reader) on(t *testing.T) reader {
	w := *r.World
	w.T = t
	f := *r.forgetful
	f.world, r.forgetful = &world{&w}, &f
	return r
}

func (r reader) answers() {
	if n := r.unknown(); n != 0 {
		r.Errorf("an audit knows nothing of %d slots", n)
	}
	if n := r.lacks(); n != 0 {
		r.Errorf("of %d slots that ran, the runs of the schedule lack %d", len(r.ran), n)
	}
	if first, pauses := r.knowsTheStart(); !first || pauses != r.pauses {
		r.Errorf("the first event is known: %t; and %d pauses of %d", first, pauses, r.pauses)
	}
	var job struct {
		State string
		Runs  []struct{ Outcome history.Word }
	}
	if r.read(&job, "tasks", "show", "job"); job.State != "gone" || len(job.Runs) != 1 || job.Runs[0].Outcome != history.Done {
		r.Errorf("the forgotten task is %+v", job)
	}
}

func (r reader) answersLess() {
	if n := r.unknown(); n < len(r.ran) {
		r.Errorf("without the archive an audit knows nothing of %d slots, want at least %d", n, len(r.ran))
	}
	if n := r.lacks(); n != len(r.ran) {
		r.Errorf("without the archive the runs lack %d slots, want %d", n, len(r.ran))
	}
	if first, pauses := r.knowsTheStart(); first || pauses == r.pauses {
		r.Errorf("without the archive the first event is known: %t; and %d pauses of %d", first, pauses, r.pauses)
	}
	if code, out, _ := r.try("tasks", "show", "job"); code == 0 {
		r.Errorf("without the archive the forgotten task is %s", out)
	}
}

// saysThatItIsAway fails unless the commands that need the archive fail and say why, and the present is shown.
func (r reader) saysThatItIsAway() {
	for _, args := range [][]string{
		{"audit", "quick", "--since", "2h"}, {"audit", "--since", "2h", "--json"}, {"schedules", "runs", "quick", "--limit", "10000"},
		{"events", "--since", "2h", "--limit", "10000"}, {"tasks", "show", "job"},
	} {
		if code, out, errs := r.try(args...); code != 1 || !contains(errs, "archive") || contains(out, "✓") {
			r.Errorf("onbeat %v: exit %d: %s%s", args, code, out, errs)
		}
	}
	if code, out, errs := r.try("schedules", "runs", "quick", "--limit", "5"); code != 0 || !contains(out, "done") {
		r.Errorf("runs of just now: exit %d: %s%s", code, out, errs)
	}
}
