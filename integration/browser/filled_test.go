package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/testredis"
)

// filled is a world in which what a page can show has happened: schedules that run, fail, are paused and deleted, tasks in each state,
// two releases, a lead that passed, and somebody who had to sign in.
type filled struct {
	*world
	token string
}

// newGuarded is a world whose API has a token, and an instance without schedules.
func newGuarded(t *testing.T) *filled {
	t.Helper()
	f := &filled{newWorld(t), "a-secret-of-an-admin-for-tests-alone"}
	f.roll("v1")
	return f
}

// roll starts an instance of a release, which declares schedules.
func (f *filled) roll(release string, schedules ...string) {
	f.Helper()
	file := f.File("token", f.token+"\n")
	f.serve(release, fmt.Sprintf("concurrency: 20\nlease: 5s\napi: {listen: '127.0.0.1:0', tokens: [{name: ann, role: admin, token_file: %q}]}\n", file), schedules...)
}

// call calls the API, and returns the answer. It fails unless the API agrees.
func (f *filled) call(method, path, body string) string {
	f.Helper()
	req, err := http.NewRequestWithContext(f.Context(), method, "http://"+f.front.Addr().String()+"/v1"+path, strings.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+f.token)
	req.Header.Set("Content-Type", "application/json")
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		f.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode >= 300 {
		f.Fatalf("%s %s: %s %v: %s", method, path, reply.Status, err, text)
	}
	return string(text)
}

// comes signs somebody in, in a browser.
func (f *filled) comes() *tab {
	f.Helper()
	b := f.browse()
	b.open("/login")
	b.fills("#token", f.token)
	b.click("#login [type=submit]")
	b.waits(`location.pathname === '/' && document.readyState === 'complete'`)
	return b
}

func newFilled(t *testing.T) *filled {
	t.Helper()
	f := newGuarded(t)
	schedules := []string{
		"  - {name: well, every: 300ms, task: echo, payload: {message: a beat}}\n",
		"  - {name: fails, every: 1s, task: sleep, payload: {for: 1ms, fail: 1}, max_attempts: 1}\n",
		"  - {name: retried, every: 1s, task: sleep, payload: {for: 1ms, fail: 0.5}, backoff: 50ms, queue: slow}\n",
		"  - {name: long, every: 2s, task: sleep, payload: {for: 1h}, overlap: skip, priority: high}\n",
		"  - {name: nightly, cron: '30 2 * * *', timezone: Asia/Seoul, task: echo, payload: {user: ann, password: s3cret}, secret: [password]}\n",
	}
	f.roll("v2", append(schedules, "  - {name: retired, every: 1m, task: echo}\n")...)
	f.roll("v3", schedules...)
	for name, every := range map[string]string{"by-hand": "1s", "halted": "1s", "gone": "1s"} {
		f.call("PUT", "/schedules/"+name, fmt.Sprintf(`{"name":%q,"every":%q,"task":"echo"}`, name, every))
	}
	f.call("PUT", "/schedules/by-hand", `{"name":"by-hand","every":"2s","task":"echo","payload":{"order":42}}`)
	f.enqueue()
	f.call("POST", "/schedules/halted/pause", "")
	f.call("DELETE", "/schedules/gone", "")
	f.call("POST", "/schedules/well/trigger", "")
	f.settles()
	return f
}

// enqueue adds a task for each of the states.
func (f *filled) enqueue() {
	f.Helper()
	type fields = map[string]any
	var lines bytes.Buffer
	for _, t := range []fields{
		{"id": "runs", "type": "sleep", "payload": fields{"for": "1h"}, "timeout": "2h"},
		{"id": "due", "type": "echo", "in": "1h", "payload": fields{"order": 42}, "key": "customer-7"},
		{"id": "waits", "type": "sleep", "payload": fields{"for": "1ms", "fail": 1}, "backoff": "1h", "backoff_cap": "1h"},
		{"id": "unhandled", "type": "a-type-that-nothing-handles", "queue": "mail"},
		{"id": "dead", "type": "sleep", "payload": fields{"for": "1ms", "fail": 1}, "max_attempts": 2, "backoff": "1ms"},
		{"id": "refused", "type": "http", "payload": fields{"url": "http://127.0.0.1:1/a-long-path-that-has-no-end-and-no-room-on-a-small-screen/" + strings.Repeat("x", 120)}, "max_attempts": 1},
		{"id": "done", "type": "echo", "payload": fields{"password": "s3cret"}, "keep": "1h"},
	} {
		_ = json.NewEncoder(&lines).Encode(t)
	}
	f.Must("enqueue", "--file", f.File("tasks.jsonl", lines.String()))
}

// settles waits until each state has tasks, and schedules have runs.
func (f *filled) settles() {
	f.Helper()
	testredis.Eventually(f, patience, func() bool {
		var n struct{ Running, Due, Dead, Done int }
		if err := json.Unmarshal([]byte(f.call("GET", "/counts", "")), &n); err != nil {
			f.Fatal(err)
		}
		return n.Running >= 2 && n.Due >= 3 && n.Dead >= 3 && n.Done >= 1
	}, "the tasks never came to their states: %s", lazily(func() string { return f.call("GET", "/counts", "") }))
}
