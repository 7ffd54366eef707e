package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/embedded"
	"github.com/onbeat/onbeat/internal/trial"
)

type demoCmd struct {
	InProcess bool `name:"in-process" help:"Use the Redis inside this process even where a redis-server is on PATH."`
}

// Help is shown by onbeat demo --help.
func (c *demoCmd) Help() string {
	return "Starts a Redis, an HTTP recorder on 127.0.0.1 and three releases of itself, rolls them over a job that is due " +
		"each second, and stops, kills and freezes a leader on the way. Ends with a verdict, and exits 1 if a beat was " +
		"missed or ran twice. Nothing is left behind."
}

// demoLimit is when a demo that hangs is given up.
const demoLimit = 100 * time.Second

// Run is called when the command is given.
func (c *demoCmd) Run(ctx context.Context, a *app) error {
	ctx, done := context.WithTimeoutCause(ctx, demoLimit, fmt.Errorf("the demo took longer than %s", demoLimit))
	defer done()
	d, err := newDemo(ctx, a, c.InProcess)
	if err != nil {
		return err
	}
	defer d.close()
	ctx, stop := a.whileRead(ctx)
	defer stop()
	if err := d.story(ctx); err != nil {
		d.show.end()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if !errors.Is(err, context.Canceled) {
			fmt.Fprint(a.err, d.lastWords())
		}
		return err
	}
	v, err := d.verdict(ctx)
	d.show.end()
	if err != nil {
		return err
	}
	if !v.OK {
		fmt.Fprint(a.err, d.lastWords())
	}
	if a.JSON {
		err = a.printJSON(v)
	} else {
		v.print(a)
	}
	if err == nil && !v.OK {
		return errSaid
	}
	return err
}

// The demo's job, and the lease of its instances: short, so that a crash holds up few beats, and long enough that a busy
// machine is not taken for a dead one.
const (
	demoSchedule = "beat"
	demoEvery    = time.Second
	demoLease    = 2500 * time.Millisecond
)

// demo is the stage: a Redis, a recorder, and a lane for each release.
type demo struct {
	a      *app
	redis  *embedded.Server
	client *client
	rec    *trial.Recorder
	dir    string
	began  time.Time
	lanes  []*demoLane
	show   *demoShow
	trials []demoTrial
	stall  atomic.Int64       // the longest time, in ns, that this process did not get to run
	stop   context.CancelFunc // of the watcher
	idle   chan struct{}      // closed when it has stopped
}

func newDemo(ctx context.Context, a *app, inProcess bool) (d *demo, err error) {
	if !trial.CanSignal {
		return nil, &failure{errors.New("the demo stops, kills and freezes processes by signals, which this system lacks"), "run it on Linux or macOS"}
	}
	d = &demo{a: a, stop: func() {}}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if d.dir, err = os.MkdirTemp("", "onbeat-demo-"); err != nil {
		return nil, err
	}
	if d.redis, err = embedded.Start(ctx, embedded.Options{InProcess: inProcess}); err != nil {
		return nil, err
	}
	if d.rec, err = trial.NewRecorder(); err != nil {
		return nil, err
	}
	if d.client, err = (target{url: d.redis.URL(), cfg: onbeat.Config{Namespace: "demo"}}).open(); err != nil {
		return nil, err
	}
	if err := os.WriteFile(d.config(), []byte(d.yaml()), 0o600); err != nil {
		return nil, err
	}
	for _, release := range []string{"v1", "v2", "v3"} {
		d.lanes = append(d.lanes, &demoLane{release: release})
	}
	d.began = time.Now()
	d.show = newDemoShow(a, d)
	d.show.printf("Redis: %s", d.redis)
	watch, stop := context.WithCancel(ctx)
	d.stop, d.idle = stop, make(chan struct{})
	go d.watch(watch)
	return d, nil
}

func (d *demo) config() string { return filepath.Join(d.dir, "onbeat.yaml") }

func (d *demo) yaml() string {
	return fmt.Sprintf(`redis: {url: %q}
namespace: demo
lease: %s
drain: 2s
schedules:
  - name: %s
    every: %s
    task: http
    payload: {url: %q, timeout: 5s}
`, d.redis.URL(), demoLease, demoSchedule, demoEvery, d.rec.URL(demoSchedule))
}

// close takes everything away, in whatever state it is.
func (d *demo) close() {
	d.stop()
	if d.idle != nil {
		<-d.idle
	}
	for _, l := range d.lanes {
		l.kill()
	}
	if d.client != nil {
		d.client.Close()
	}
	if d.rec != nil {
		d.rec.Close()
	}
	if d.redis != nil {
		_ = d.redis.Close()
	}
	if d.dir != "" {
		_ = os.RemoveAll(d.dir)
	}
}

// lastLines is how much of each log lastWords repeats.
const lastLines = 40

// lastWords is the end of what each process logged, for whoever must find out what went wrong.
func (d *demo) lastWords() string {
	var b strings.Builder
	for _, l := range d.lanes {
		text, err := os.ReadFile(d.logOf(l))
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		for _, line := range lines[max(0, len(lines)-lastLines):] {
			fmt.Fprintf(&b, "%s: %s\n", l.release, line)
		}
	}
	return b.String()
}

func (d *demo) logOf(l *demoLane) string { return filepath.Join(d.dir, l.release+".log") }
