package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// replicaEnv is the variable that says what a replica is.
const replicaEnv = "ONBEAT_BEAT_REPLICA"

// replica is a process with the jobs of a release.
type replica struct {
	Peer     string   `json:"peer"`
	Name     string   `json:"name"`
	Release  int      `json:"release"`
	Recorder string   `json:"recorder"` // a URL
	Store    string   `json:"store"`    // host:port of Redis, or the URL of PostgreSQL
	Jobs     []job    `json:"jobs"`
	Gone     []string `json:"gone"` // jobs that an earlier release had
}

// ready is the name under which a replica tells the recorder that it works.
const ready = "ready"

// runner does one run of a job. The ID is the same for each attempt of the same work.
type runner func(ctx context.Context, j job, id string) error

// peer starts the jobs, and returns a function that stops them as the peer's documentation does at SIGTERM. It returns when the
// replica works, as far as the peer tells.
type peer func(ctx context.Context, r *replica, run runner) (stop func() error, err error)

// peers are the peers of this program. BullMQ is not among them: node/beat.mjs is its replica.
var peers = map[string]peer{
	"onbeat":         startOnbeat,
	"asynq":          startAsynq,
	"gocron locker":  startGocronLocker,
	"gocron elector": startGocronElector,
	"cron and lock":  startCron,
	"river":          startRiver,
}

// beReplica runs the jobs until SIGTERM.
func beReplica(ctx context.Context) error {
	r := &replica{}
	if err := json.Unmarshal([]byte(os.Getenv(replicaEnv)), r); err != nil {
		return err
	}
	told, done := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer done()
	stop, err := peers[r.Peer](ctx, r, r.run)
	if err != nil {
		return err
	}
	if err := r.tell(ctx, ready, "", 0); err != nil {
		return err
	}
	<-told.Done()
	return stop()
}

// run tells the recorder that a run begins. The recorder answers when the run is to end, and notices if it is broken off.
func (r *replica) run(ctx context.Context, j job, id string) error {
	return r.tell(ctx, j.Name, id, j.Takes)
}

func (r *replica) tell(ctx context.Context, name, id string, takes time.Duration) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Recorder+"?for="+takes.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Onbeat-Schedule", name)
	req.Header.Set("Onbeat-Task-Id", id)
	req.Header.Set("Onbeat-Instance", r.Name)
	req.Header.Set("Onbeat-Release", strconv.Itoa(r.Release))
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the recorder says %s", answer.Status)
	}
	return nil
}
