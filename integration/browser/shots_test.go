package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/testredis"
)

// story is a shop in the middle of its day: what the pictures of the documentation show.
func (w *world) story() []string {
	return []string{
		w.Beat("orders.sync", 200*time.Millisecond, "max_attempts: 3"),
		w.Beat("prices.refresh", time.Second, "max_attempts: 3"),
		w.BeatTo("stock?for=400ms", "stock.count", 2*time.Second),
		w.Beat("cache.warm", 3*time.Second),
		"  - {name: thumbnails, every: 1s, task: sleep, max_attempts: 2, payload: {for: 80ms, fail: 0.25}}\n",
		"  - {name: currency.rates, every: 5s, task: sleep, payload: {for: 30ms, fail: 0.2}}\n",
		"  - {name: carts.expire, every: 10s, task: echo}\n",
		"  - {name: invoices.send, cron: '* * * * *', task: echo}\n",
		"  - {name: report.daily, cron: '0 6 * * 1-5', timezone: Asia/Tokyo, task: echo}\n",
	}
}

// fill adds tasks in each state.
func (w *world) fill() {
	w.Helper()
	w.Must("schedules", "pause", "cache.warm")
	for i := range 7 {
		w.Must("enqueue", "http", "--id", fmt.Sprintf("order-%d/mail", 4100+i), "--payload", `{"url":"http://127.0.0.1:9/mail"}`, "--max-attempts", "1")
	}
	for i := range 3 {
		w.Must("enqueue", "http", "--id", fmt.Sprintf("order-%d/ship", 4100+i), "--max-attempts", "1",
			"--payload", fmt.Sprintf(`{"url":%q,"expect":[200]}`, w.Rec.URL("ship")))
		w.Must("enqueue", "sleep", "--id", fmt.Sprintf("export-%d", 70+i), "--payload", `{"for":"8s"}`)
		w.Must("enqueue", "echo", "--id", fmt.Sprintf("reminder-%d", 900+i), "--payload", `{"customer":17}`, "--in", fmt.Sprintf("%dm", 20+i))
	}
	w.Must("enqueue", "http", "--id", "order-4108/pay", "--payload", `{"url":"http://127.0.0.1:9/pay"}`, "--max-attempts", "4")
	testredis.Eventually(w, patience, func() bool { return len(w.dead()) >= 10 }, "the tasks do not die")
}

// dead are the IDs of tasks that have died.
func (w *world) dead() string { return w.Must("tasks", "list", "--state", "dead", "--json") }

// TestShots makes the pictures of the documentation: `make screenshots`.
func TestShots(t *testing.T) {
	dir := os.Getenv("ONBEAT_SHOTS")
	if dir == "" {
		t.Skip("no ONBEAT_SHOTS")
	}
	w, _ := privateWorld(t)
	w.NS = "shop"
	save := func(name string, png []byte) {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	up := func(release string) []*rig.Process {
		return []*rig.Process{w.serve(release, head, w.story()...), w.serve(release, head, w.story()...)}
	}
	old := up("v1.4.2")
	b := w.browse()
	b.allow(gone)
	b.looks(false, 1280, 800)
	b.open("/beat?zoom=1m")
	w.fill()
	time.Sleep(15 * time.Second) // what the picture is of takes its time
	next := up("v1.5.0")
	time.Sleep(4 * time.Second)
	for _, p := range old {
		p.Stop()
		time.Sleep(2 * time.Second)
	}
	time.Sleep(12 * time.Second)
	b.settled()
	save("beat-rollout", b.shot(false))
	b.looks(true, 1280, 800)
	time.Sleep(time.Second)
	save("beat-rollout-dark", b.shot(false))

	w.Must("enqueue", "sleep", "--id", "export-80", "--payload", `{"for":"10m"}`)
	time.Sleep(10 * time.Second)
	next[1].Kill()
	time.Sleep(20 * time.Second)
	b.looks(false, 1280, 800)
	time.Sleep(time.Second)
	save("beat-crash", b.shot(false))
	b.looks(true, 1280, 800)
	time.Sleep(time.Second)
	save("beat-crash-dark", b.shot(false))
	b.click("#as-table")
	time.Sleep(time.Second)
	save("beat-table", b.shot(false))

	for name, path := range map[string]string{
		"overview": "/", "beat": "/beat?zoom=5m", "schedules": "/schedules", "schedule": "/schedules/thumbnails", "new-schedule": "/new-schedule",
		"tasks": "/tasks", "dead": "/dead", "task": "/tasks/order-4108%2Fpay", "enqueue": "/enqueue", "instances": "/instances", "events": "/events", "audit": "/audit",
	} {
		b.looks(false, 1280, 800)
		b.open(path)
		b.waits(`document.querySelector('#live').dataset.state === 'live'`)
		time.Sleep(1500 * time.Millisecond)
		save(name, b.shot(false))
		b.looks(true, 1280, 800)
		time.Sleep(500 * time.Millisecond)
		save(name+"-dark", b.shot(false))
		b.looks(false, 360, 740)
		time.Sleep(500 * time.Millisecond)
		save(name+"-narrow", b.shot(false))
	}
}
