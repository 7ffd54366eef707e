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

// scroll scrolls an element for a time, some pixels in each frame, to its end and back.
const scroll = `((selector, seconds) => new Promise((resolve) => {
	const e = selector ? document.querySelector(selector) : document.scrollingElement;
	let began, by = 60;
	const step = (now) => {
		began ??= now;
		if (e.scrollTop + e.clientHeight >= e.scrollHeight - 1) by = -60;
		else if (e.scrollTop <= 0) by = 60;
		e.scrollTop += by;
		if (now - began < seconds * 1000) requestAnimationFrame(step);
		else resolve();
	};
	requestAnimationFrame(step);
}))`

// smooth is what scrolling was like, by the browser's own trace.
type smooth struct {
	frames  []float64 // ms from each frame that was drawn to the next
	dropped int       // frames that were asked for and not drawn in time
	tasks   []float64 // ms of each task of a thread
}

func quantile(list []float64, q float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(int(float64(len(list))*q), len(list)-1)]
}

func (s smooth) row(what string) []string {
	ms := func(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }
	return []string{what, fmt.Sprint(len(s.frames)), fmt.Sprint(s.dropped), ms(quantile(s.frames, .5)), ms(quantile(s.frames, .95)),
		ms(quantile(s.frames, .99)), ms(quantile(s.frames, 1)), ms(quantile(s.tasks, 1))}
}

// scrolls scrolls what a selector names for a time, while the browser traces its frames.
func (b *tab) scrolls(selector string, long time.Duration) (s smooth) {
	b.Helper()
	var last float64
	for _, e := range b.traces(func() { b.eval(fmt.Sprintf("%s(%s, %v)", scroll, quote(selector), long.Seconds())) }) {
		switch e.Name {
		case "DrawFrame":
			if last > 0 {
				s.frames = append(s.frames, (e.TS-last)/1000)
			}
			last = e.TS
		case "DroppedFrame":
			s.dropped++
		case "RunTask":
			s.tasks = append(s.tasks, e.Dur/1000)
		}
	}
	return s
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
	lines := table{}.row("while it is scrolled", "frames", "dropped", "p50 ms", "p95 ms", "p99 ms", "worst ms", "longest task ms")
	want := func(what string, s smooth) {
		t.Helper()
		lines = lines.row(s.row(what)...)
		if quantile(s.frames, .95) > 500 || len(s.frames) < 10 {
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
		if rows := `document.querySelectorAll('#list tbody tr').length`; b.has("#list [data-pager]:not([hidden])") {
			before := value[int](b, rows)
			b.reaches("#list [data-act=more]")
			b.click("#list [data-act=more]")
			b.waits(fmt.Sprintf("%s > %d", rows, before))
		}
	}
	rows := value[int](b, `document.querySelectorAll('#list tbody tr').length`)
	want(fmt.Sprintf("the list, %d rows", rows), b.scrolls("", long))
	b.fills("[name=match]", last)
	b.waits(`document.querySelectorAll('#list tbody tr').length === 1`)
	b.shows("#list tbody", last)
	t.Logf("%d schedules:\n%s", n, lines)
}
