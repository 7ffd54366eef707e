package main

import (
	"errors"
	"io/fs"
	"os"
)

type initCmd struct {
	File string `arg:"" optional:"" default:"onbeat.yaml" predict:"file" help:"File to write (default ${default})."`
}

// Help is shown by onbeat init --help.
func (c *initCmd) Help() string {
	return "Writes a first config with comments, which asks for nothing that a new machine lacks. It changes no file that is there."
}

// firstConfig is what init writes. It has no secret in it, so other users may read it.
const firstConfig = `# The config of an onbeat instance. All instances of a release have the same.
#   onbeat check FILE      lists every problem, and the next slot of each schedule
#   onbeat dev -c FILE     runs it with a Redis of its own, to try it
#   onbeat serve -c FILE   runs it with the Redis below
# docs/reference.md has every field: https://github.com/onbeat/onbeat/blob/main/docs/reference.md

# Where Redis is, also rediss://, redis-sentinel:// and redis-cluster://. ${NAME} is an environment variable, so that no
# secret is in this file: redis://app:${REDIS_PASSWORD}@redis.internal:6379/0
redis: {url: "redis://127.0.0.1:6379/0"}

# The dispatcher, of which there may be many on one Redis. Its keys begin with onbeat:{myapp}:
namespace: myapp

# In production an instance proves itself before it leads, and a stop lets runs finish. Give the stop drain and 15 s.
# min_ready: 10s
drain: 30s

# The API and the dashboard. To open them to other machines, listen on 0.0.0.0:8080 and give out tokens.
api:
  listen: 127.0.0.1:8080
  # tokens: [{name: ops, role: admin, token: "${ONBEAT_ADMIN}"}]

# Who hears when a job fails, a slot is missed or no instance leads.
# notify: [{name: ops, url: "${SLACK_WEBHOOK}"}]

# A schedule of an earlier release that is not in this list is retired.
schedules:
  - name: heartbeat
    every: 5s
    task: echo                 # logs its payload
    payload: {message: "a beat"}

  - name: nightly-report
    cron: "0 2 * * *"          # minute, hour, day, month, weekday
    timezone: Europe/Berlin
    task: echo                 # or http, with payload: {method: POST, url: "https://shop.example/report"}
    payload: {report: yesterday}
    missed: once               # run the latest slot that an outage left out; or all, or skip
    overlap: skip              # leave out a slot while the run before it goes on; or allow, queue, replace
`

// Run writes the file.
func (c *initCmd) Run(a *app) error {
	f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // an instance of another user reads it
	switch {
	case errors.Is(err, fs.ErrExist):
		return refuse("file", c.File, "is there already, and init changes no file", "name another, or remove it")
	case err != nil:
		return err
	}
	_, err = f.WriteString(firstConfig)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	a.printf("Wrote %s. Try it:\n  onbeat check %[1]s\n  onbeat dev -c %[1]s", block(c.File))
	return nil
}
