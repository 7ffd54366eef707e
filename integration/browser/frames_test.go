package browser

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// many is how many schedules the pages show while they are scrolled.
func many(t *testing.T) int {
	t.Helper()
	text := os.Getenv("ONBEAT_TEST_MANY")
	if text == "" {
		return 1000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal("ONBEAT_TEST_MANY:", err)
	}
	return n
}

// crowd declares schedules: one in a hundred runs each second, the others each minute, hour or day.
func crowd(n int) (list []string) {
	for i := range n {
		every := []string{"1m", "1h", "1d"}[i%3]
		if i%100 == 0 {
			every = "1s"
		}
		list = append(list, fmt.Sprintf("  - {name: schedule-%05d, every: %s, start: aligned, task: sleep, payload: {for: 1ms}}\n", i, every))
	}
	return list
}

// scroll scrolls an element for a time, some pixels in each frame, to its end and back. It tells how long each frame took in ms, by the
// clock of the browser's frames, and the longest that a frame was kept waiting by scripts and layout.
const scroll = `((selector, seconds) => new Promise((resolve) => {
	const e = selector ? document.querySelector(selector) : document.scrollingElement;
	const frames = [], long = [];
	const watch = new PerformanceObserver((list) => long.push(...list.getEntries().map((x) => x.duration)));
	watch.observe({ type: 'long-animation-frame' });
	let last, began, by = 60, from = e.scrollTop;
	const step = (now) => {
		began ??= now;
		if (last !== undefined) frames.push(now - last);
		last = now;
		if (e.scrollTop + e.clientHeight >= e.scrollHeight - 1) by = -60;
		else if (e.scrollTop <= 0) by = 60;
		e.scrollTop += by;
		if (now - began < seconds * 1000) return requestAnimationFrame(step);
		setTimeout(() => (watch.disconnect(), resolve({ frames, long, height: e.scrollHeight })), 200);
	};
	requestAnimationFrame(step);
}))`

// smooth is what scrolling was like.
type smooth struct {
	Frames, Long []float64
	Height       float64
}

func (s smooth) quantile(q float64) float64 {
	slices.Sort(s.Frames)
	return s.Frames[min(int(float64(len(s.Frames))*q), len(s.Frames)-1)]
}

func (s smooth) row(what string) []string {
	ms := func(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }
	worst := 0.0
	if len(s.Long) > 0 {
		worst = slices.Max(s.Long)
	}
	return []string{what, fmt.Sprint(len(s.Frames)), ms(s.quantile(.5)), ms(s.quantile(.95)), ms(s.quantile(.99)), ms(s.quantile(1)), fmt.Sprint(len(s.Long)), ms(worst)}
}

// scrolls scrolls what a selector names for a time.
func (b *tab) scrolls(selector string, long time.Duration) smooth {
	b.Helper()
	return value[smooth](b, fmt.Sprintf("%s(%s, %v).then((r) => ({ Frames: r.frames, Long: r.long, Height: r.height }))", scroll, quote(selector), long.Seconds()))
}

func TestManySchedules_scrollSmoothly(t *testing.T) {
	t.Parallel()
	n := many(t)
	long := 2 * time.Second
	if n >= 10_000 {
		long = 8 * time.Second
	}
	w := newWorld(t)
	w.serve("v1", head, crowd(n)...)
	b := w.browse()
	lines := table{}.row("while it is scrolled", "frames", "p50 ms", "p95 ms", "p99 ms", "worst ms", "long frames", "worst of them ms")
	want := func(what string, s smooth) {
		t.Helper()
		lines = lines.row(s.row(what)...)
		if s.quantile(.95) > 500 || len(s.Frames) < 10 {
			t.Errorf("%s stutters: %s", what, strings.Join(s.row(what), " "))
		}
	}
	last := fmt.Sprintf("schedule-%05d", n-1)

	began := time.Now()
	b.open("/beat")
	b.waits(`document.querySelector('#names a')`)
	t.Logf("the beat of %d schedules shows after %s", n, time.Since(began).Round(10*time.Millisecond))
	b.waits(fmt.Sprintf(`document.querySelector('#space').clientHeight >= %d`, n*28)) // all are there
	b.shows("#names a", "schedule-00000")
	want("the beat, 5 m", b.scrolls("#rows", long))
	b.click(`#zooms [data-zoom="1m"]`)
	want("the beat, 1 m", b.scrolls("#rows", long))
	b.click(`#zooms [data-zoom="1d"]`)
	b.settled()
	want("the beat, 1 d", b.scrolls("#rows", long))
	b.eval(`(() => { const e = document.querySelector('#rows'); e.scrollTop = e.scrollHeight })()`)
	b.shows("#names a", last)

	began = time.Now()
	b.open("/schedules")
	b.shows("#list tbody", "schedule-00000")
	t.Logf("the list of %d schedules shows after %s", n, time.Since(began).Round(10*time.Millisecond))
	b.waits(fmt.Sprintf(`document.querySelector('#states b')?.textContent.replace(/\D/g, '') === '%d'`, n))
	for range 7 { // as many as somebody pages through
		if b.has("#list [data-act=more]") {
			b.click("#list [data-act=more]")
		}
	}
	rows := value[int](b, `document.querySelectorAll('#list tbody tr').length`)
	want(fmt.Sprintf("the list, %d rows", rows), b.scrolls("", long))
	b.fills("[name=match]", last)
	b.waits(`document.querySelectorAll('#list tbody tr').length === 1`)
	b.shows("#list tbody", last)
	t.Logf("%d schedules:\n%s", n, lines)
}
