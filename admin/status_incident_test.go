package admin

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
)

// Events of one cause are one incident, and it says who went, which instance leads since, and how long no leader was there.
func TestIncidentsOf_groupsByCause(t *testing.T) {
	t.Parallel()
	const a, b = "019abc00-0000-7000-8000-00000aaaaaaa", "019abc00-0000-7000-8000-00000bbbbbbb"
	at := func(s int) string { return strconv.FormatInt(noon.Add(time.Duration(s)*time.Second).UnixMilli(), 10) }
	e := func(s int, kind string, fields ...string) queue.Event {
		x := queue.Event{ID: at(s) + "-0", At: noon.Add(time.Duration(s) * time.Second), Kind: kind, Fields: map[string]string{"host": "pod", "release": "v1"}}
		for i := 0; i < len(fields); i += 2 {
			x.Fields[fields[i]] = fields[i+1]
		}
		return x
	}
	for name, c := range map[string]struct {
		events []queue.Event
		want   []string // parts of the text of each incident, joined by *
	}{
		"a leader crashed, and its lease was long": {[]queue.Event{
			e(0, "joined", "instance", a), e(1, "leader", "instance", a, "before", ""),
			e(100, "suspected", "instance", a, "ms", "1200"), e(100, "leader", "instance", b, "before", a), e(190, "lost", "instance", a, "lease", at(190)),
		}, []string{"pod …aaaaaa (v1) crashed*pod …bbbbbb (v1) leads*paused for up to 1.2s"}},
		"Redis froze, and all are back": {[]queue.Event{
			e(50, "lost", "instance", a, "lease", at(40), "seen", at(34)), e(50, "lost", "instance", b, "lease", at(40), "seen", at(35)),
			e(50, "no leader", "instance", a, "since", at(40)), e(51, "joined", "instance", a), e(51, "joined", "instance", b), e(52, "leader", "instance", b, "before", ""),
		}, []string{"pod …aaaaaa (v1), pod …bbbbbb (v1): each was cut off from Redis and is back*paused for up to 18s"}},
		"two lead, one after the other, after a long time": {[]queue.Event{
			e(50, "lost", "instance", a, "lease", at(40), "seen", at(35)), e(50, "no leader", "instance", a, "since", at(40)),
			e(540, "leader", "instance", b, "before", a), e(541, "joined", "instance", a), e(545, "leader", "instance", a, "before", a),
		}, []string{"paused for up to 8m30s"}},
		"nobody leads":             {[]queue.Event{e(1, "lost", "instance", a, "lease", at(1)), e(1, "no leader", "instance", a, "since", at(1))}, []string{"crashed*no instance leads since"}},
		"two, a minute apart":      {[]queue.Event{e(1, "lost", "instance", a), e(61, "lost", "instance", b)}, []string{"aaaaaa", "bbbbbb"}},
		"it stood still":           {[]queue.Event{e(1, "suspected", "instance", a, "ms", "900"), e(1, "leader", "instance", b, "before", a), e(3, "suspected wrongly", "instance", a)}, []string{"aaaaaa (v1) led and showed no sign of life"}},
		"a rollout is no incident": {[]queue.Event{e(1, "joined", "instance", b), e(2, "leader", "instance", b, "before", a), e(3, "left", "instance", a)}, nil},
	} {
		got := incidentsOf(c.events)
		if len(got) != len(c.want) {
			t.Errorf("%s: %d incidents", name, len(got))
			continue
		}
		for i, n := range got {
			for part := range strings.SplitSeq(c.want[i], "*") {
				if text := n.text("none"); !strings.Contains(text, part) {
					t.Errorf("%s: %q lacks %q", name, text, part)
				}
			}
		}
	}
}
