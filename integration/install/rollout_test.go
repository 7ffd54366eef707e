package install

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
)

// fleet is two containers of one version of the image, on the Redis and the archive of a test.
type fleet struct {
	*rig.World
	config string
}

// start starts a container of a version, v1 or v2, and waits until it is ready.
func (f *fleet) start(version string) (id string) {
	f.Helper()
	of := image(f.T)
	if version != "v1" {
		of = imageOf(f.T, imageName+"-"+version, "VERSION="+version)
	}
	options := []string{"--network=host", "--no-healthcheck", "--volume=" + f.config + ":/etc/onbeat/onbeat.yaml:ro", "--env=ONBEAT_RELEASE=" + version}
	for _, variable := range f.Env() {
		options = append(options, "--env="+variable)
	}
	id = container(f.T, of, options)
	f.says(id, "ready")
	return id
}

// says waits until a container has logged a message.
func (f *fleet) says(id, message string) {
	f.Helper()
	testredis.Eventually(f, time.Minute, func() bool {
		out, err := exec.Command("docker", "logs", id).CombinedOutput()
		return err == nil && strings.Contains(string(out), `"message":"`+message+`"`)
	}, "%s never says %q", id, message)
}

// stop stops a container as an orchestrator does, and wants a clean exit.
func (f *fleet) stop(id string) {
	f.Helper()
	command(f.T, "docker", "stop", "--time", "60", id)
	if code := command(f.T, "docker", "inspect", "--format", "{{.State.ExitCode}}", id); code != "0" {
		f.Errorf("%s: exit %s", id, code)
	}
}

// While two containers of v1 are replaced by v2, and these by v1 again, PostgreSQL and Redis are killed and come back. Each second has
// its run, and none has two except around the time without Redis. The archive has all runs.
func TestImage_rollsForthAndBackWhileItsServersRestart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a rollout takes half a minute")
	}
	if runtime.GOOS != "linux" {
		t.Skip("containers do not share the network of this machine")
	}
	_ = image(t) // or there is no engine
	redis := testredis.Private(t, "--appendonly", "yes")
	postgres := testpostgres.Private(t)
	database := postgres.Database()
	f := &fleet{World: rig.On(t, redis.URL())}
	f.config = f.Config("onbeat.yaml", fmt.Sprintf("consume: release\nlease: 10s\ndrain: 30s\narchive: {url: %q}\n", database), f.Beat("beat", time.Second, "missed: all"))
	if err := os.Chmod(f.config, 0o644); err != nil { // the image runs as nobody
		t.Fatal(err)
	}

	var away []outage
	live := []string{f.start("v1"), f.start("v1")}
	f.Grow(3, "nothing arrives")
	for _, version := range []string{"v2", "v1"} {
		postgres.Kill()
		next := []string{f.start(version)}
		f.Grow(2, "the beat stops without PostgreSQL")
		postgres.Start()
		from := time.Now()
		redis.Kill()
		redis.Restart()
		away = append(away, outage{from, time.Now()})
		f.Grow(2, "the beat stops after Redis came back")
		f.stop(live[0])
		next = append(next, f.start(version))
		f.stop(live[1])
		f.Grow(3, "the beat stops after the rollout")
		if runs := f.Of("beat"); runs[len(runs)-1].Release != version {
			t.Errorf("%s runs the beat after a rollout to %s", runs[len(runs)-1].Release, version)
		}
		live = next
	}

	f.wantArchived(database)
	f.wantAudited(live[0])
	for _, id := range live {
		f.stop(id)
	}
	f.WantEverySlot("beat", time.Second, true)
	for _, runs := range rig.BySlot(t, f.Of("beat")) {
		if !rig.Rising(runs) || len(runs) > 1 && !during(away, runs[0].At) {
			t.Errorf("a slot ran %d times while Redis was there: %+v", len(runs), runs)
		}
	}
}

// outage is a time without Redis.
type outage struct{ from, to time.Time }

// during reports whether a run that began at a moment may have been cut off by an outage: its claim is void when a lease has gone by.
func during(list []outage, at time.Time) bool {
	for _, o := range list {
		if at.After(o.from.Add(-10*time.Second)) && at.Before(o.to.Add(10*time.Second)) {
			return true
		}
	}
	return false
}

// wantArchived waits until the archive has a run for each slot that arrived up to now.
func (f *fleet) wantArchived(database string) {
	f.Helper()
	slots := len(rig.BySlot(f.T, f.Of("beat")))
	db, err := pgx.Connect(f.Context(), database)
	if err != nil {
		f.Fatal(err)
	}
	testredis.Eventually(f, time.Minute, func() bool {
		var n int
		err := db.QueryRow(f.Context(), "select count(distinct slot) from onbeat_runs where schedule = 'beat' and outcome = 'done'").Scan(&n)
		return err == nil && n >= slots
	}, "the archive has not the %d slots that ran", slots)
	if err := db.Close(f.Context()); err != nil {
		f.Error(err)
	}
}

// wantAudited fails unless the program in the image says that no slot was missed.
func (f *fleet) wantAudited(id string) {
	f.Helper()
	var said struct{ Schedules []audit.Report }
	out := command(f.T, "docker", "exec", id, "/usr/bin/onbeat", "audit", "--json")
	if err := json.Unmarshal([]byte(out), &said); err != nil {
		f.Fatal(err)
	}
	if len(said.Schedules) != 1 || said.Schedules[0].Counts[audit.Missed] != 0 || said.Schedules[0].Counts[audit.OnTime] == 0 {
		f.Errorf("audit: %s", out)
	}
}
