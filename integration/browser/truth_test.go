package browser

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// trouble is a line of the status.
type trouble struct {
	Kind, Name, Text string
	Warning          bool
}

// troubled are the lines of the status of a kind, the worst first.
func (w *world) troubled(kind string) []trouble {
	w.Helper()
	_, out, _ := w.Try("status", "--json")
	var s struct{ Trouble []trouble }
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		w.Fatal(err)
	}
	return slices.DeleteFunc(s.Trouble, func(t trouble) bool { return t.Kind != kind })
}

// The pages say the same as onbeat status: of a run that hangs, of a schedule that a release retired, and of a leader that crashed. The beat
// of the other schedules goes on, and the title and the menu count the troubles.
func TestTruth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	beat, hangs := w.Beat("beat", time.Second, "missed: all"), "  - {name: hangs, every: 2s, task: sleep, payload: {for: 1h}, overlap: skip}\n"
	w.serve("v1", head, beat, hangs, w.Beat("legacy", time.Second, ""))
	b := w.browse()
	b.allow(gone)
	list := b.another()
	b.open("/beat?view=table&zoom=60")
	b.shows("#table tbody", "legacy")
	leads := w.serve("v2", head, beat, hangs)
	testredis.Eventually(w, patience, func() bool { return len(w.troubled("retired")) == 1 }, "legacy is not retired")
	ran := `[...document.querySelectorAll('#table tbody tr')].filter((r) => r.cells[0].textContent === 'beat' && r.cells[7].textContent === 'v2').length`
	b.waits(fmt.Sprintf("%s > %d", ran, value[int](b, ran)+5)) // legacy is in view, and the beat goes on
	b.waits(`document.querySelector('#note').hidden`)

	retired := w.troubled("retired")[0]
	if retired.Name != "v2" || !strings.HasSuffix(retired.Text, "1 schedule: legacy") {
		w.Errorf("%+v", retired)
	}
	list.open("/")
	list.shows("#attention", retired.Text)
	list.open("/schedules?state=retired")
	list.shows("#list tbody tr:only-child", "legacy")
	list.shows("#list tbody tr:only-child", "by v2")
	list.open("/beat?zoom=60")
	list.shows("#names a[data-retired]", "legacy")

	testredis.Eventually(w, patience, func() bool { return len(w.troubled("hung")) == 1 }, "nothing hangs")
	said := w.troubled("hung")[0]
	list.open("/schedules")
	list.shows("#list tbody tr:first-child [data-field=state]", "hung")
	list.shows("#list tbody tr:first-child [data-field=name]", said.Name)
	list.shows("#list tbody tr:first-child [data-field=why]", strings.Fields(said.Text)[0]) // its length grows
	list.shows("[data-nav=schedules] b", "1")
	list.waits(`/^\(\d+\) /.test(document.title)`)
	list.open("/schedules/hangs")
	list.shows(".head [data-field=state]", "hung")
	list.click("#holder button")
	list.agrees()
	testredis.Eventually(w, patience, func() bool { return len(w.troubled("hung")) == 0 }, "the run is not cancelled")
	list.waits(`document.querySelector('.head [data-field=state]').textContent !== 'hung'`)

	crashed := leads.Instance()
	leads.Send(syscall.SIGKILL)
	testredis.Eventually(w, patience, func() bool { return len(w.troubled("incident")) == 2 }, "the crash is no news")
	list.open("/")
	news := w.troubled("incident")
	slices.SortFunc(news, func(a, b trouble) int { return strings.Compare(a.Name, b.Name) })
	if !news[0].Warning || !strings.Contains(news[0].Text, crashed[len(crashed)-6:]+" (v2)") || !strings.Contains(news[0].Text, "(v1) leads since") || news[1].Name != "v2" {
		w.Errorf("%+v", news)
	}
	list.shows("#attention", crashed[len(crashed)-6:]+" (v2) crashed")
	list.shows("#attention", "v2 incident")
	list.open(value[string](list, `[...document.querySelectorAll('#attention a')].find((a) => a.pathname === '/beat').getAttribute('href')`))
	list.waits(`!document.querySelector('#when').textContent.startsWith('the last')`)
}
