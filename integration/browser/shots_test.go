package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/onbeat/onbeat/integration/internal/rig"
)

// story is a shop in the middle of its day, for the pictures of the documentation.
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

// shot saves a picture of what the window shows, in the two schemes.
func (b *tab) shot(dir, name string, width, height int64) {
	b.Helper()
	for suffix, dark := range map[string]bool{"": false, "-dark": true} {
		b.looks(dark, width, height)
		time.Sleep(time.Second) // the canvas follows
		png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+suffix+".png"), png, 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// TestShots makes the pictures of the documentation: `make screenshots`.
func TestShots(t *testing.T) {
	dir := os.Getenv("ONBEAT_SHOTS")
	if dir == "" {
		t.Skip("no ONBEAT_SHOTS")
	}
	w, _ := privateWorld(t)
	w.NS = "shop"
	up := func(release string) []*rig.Process {
		return []*rig.Process{w.serve(release, head, w.story()...), w.serve(release, head, w.story()...)}
	}
	old := up("v1.4.2")
	b := w.browse()
	b.allow(gone)
	b.open("/beat?zoom=1m")
	w.Must("schedules", "pause", "cache.warm")
	lines := []string{`{"type":"http","id":"order-4108/pay","payload":{"url":"http://127.0.0.1:9/pay"},"max_attempts":4}`}
	for i := range 7 {
		lines = append(lines,
			fmt.Sprintf(`{"type":"http","id":"order-%d/mail","payload":{"url":"http://127.0.0.1:9/mail"},"max_attempts":1}`, 4100+i),
			fmt.Sprintf(`{"type":"sleep","id":"export-%d","payload":{"for":"8s"}}`, 70+i),
			fmt.Sprintf(`{"type":"echo","id":"reminder-%d","payload":{"customer":17},"in":"%dm"}`, 900+i, 20+i))
	}
	w.adds(lines...)
	time.Sleep(15 * time.Second) // the story in the picture takes its time
	next := up("v1.5.0")
	time.Sleep(4 * time.Second)
	for _, p := range old {
		p.Stop()
		time.Sleep(2 * time.Second)
	}
	time.Sleep(12 * time.Second)
	b.shot(dir, "beat-rollout", 1280, 800)

	w.adds(`{"type":"sleep","id":"export-80","payload":{"for":"10m"}}`)
	time.Sleep(10 * time.Second)
	next[1].Kill()
	time.Sleep(20 * time.Second)
	b.shot(dir, "beat-crash", 1280, 800)

	for name, path := range map[string]string{
		"overview": "/", "beat": "/beat?zoom=5m", "schedules": "/schedules", "schedule": "/schedules/thumbnails", "new-schedule": "/new-schedule",
		"tasks": "/tasks", "dead": "/dead", "task": "/tasks/order-4108%2Fpay", "enqueue": "/enqueue", "instances": "/instances", "events": "/events", "audit": "/audit",
	} {
		b.open(path)
		b.waits(`document.querySelector('#live').dataset.state === 'live'`)
		b.shot(dir, name, 1280, 800)
		b.shot(dir, name+"-narrow", 360, 740)
	}
}
