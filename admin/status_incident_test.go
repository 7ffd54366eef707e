package admin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

const a, b = "019abc00-0000-7000-8000-00000aaaaaaa", "019abc00-0000-7000-8000-00000bbbbbbb"

func secondsOn(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }

func msAt(s int) string { return strconv.FormatInt(secondsOn(s).UnixMilli(), 10) }

// eventAt is an event some seconds after noon; fields are names and values in turn.
func eventAt(s int, kind string, fields ...string) queue.Event {
	x := queue.Event{ID: msAt(s) + "-0", At: secondsOn(s), Kind: kind, Fields: map[string]string{"host": "pod", "release": "v1"}}
	for i := 0; i < len(fields); i += 2 {
		x.Fields[fields[i]] = fields[i+1]
	}
	return x
}

// frozen are the events of one instance that is cut off from Redis, which last heard of it at seen, and that leads again at back.
func frozen(seen, back int) []queue.Event {
	return []queue.Event{
		eventAt(back, "lost", "instance", a, "lease", msAt(seen+5), "seen", msAt(seen)), eventAt(back, "no leader", "instance", a, "since", msAt(seen+5)),
		eventAt(back, "joined", "instance", a), eventAt(back, "leader", "instance", a, "before", ""),
	}
}

// Events of one cause are one incident, and it says who went, which instance leads since, and how long no leader was there.
func TestIncidentsOf_groupsByCause(t *testing.T) {
	t.Parallel()
	at, e := msAt, eventAt
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
		"nobody leads":        {[]queue.Event{e(1, "lost", "instance", a, "lease", at(1)), e(1, "no leader", "instance", a, "since", at(1))}, []string{"crashed*no instance leads since"}},
		"two, a minute apart": {[]queue.Event{e(1, "lost", "instance", a), e(61, "lost", "instance", b)}, []string{"aaaaaa", "bbbbbb"}},
		"Redis froze twice":   {slices.Concat(frozen(0, 9), frozen(43, 52)), []string{"paused for up to 9.0s;", "paused for up to 9.0s;"}},
		"Redis froze twice, and the first time is not over for long": {slices.Concat(frozen(0, 9), frozen(20, 29)), []string{"paused for up to 18s"}},
		"Redis froze again when one had just begun to lead":          {slices.Concat(frozen(0, 9), frozen(7, 49)), []string{"paused for up to 9.0s;", "paused for up to 40s"}},
		"the one that was lost once leaves": {slices.Concat(frozen(0, 9), []queue.Event{
			eventAt(100, "no leader", "instance", a, "since", msAt(100)), eventAt(106, "leader", "instance", b, "before", ""),
		}), []string{"paused for up to 9.0s;", "paused for up to 6.0s;"}},
		"the one that was lost leads and leaves soon": {slices.Concat(frozen(0, 9), []queue.Event{
			eventAt(20, "no leader", "instance", a, "since", msAt(20)), eventAt(26, "leader", "instance", b, "before", ""),
		}), []string{"paused for up to 15s"}},
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
				if text := n.text(); !strings.Contains(text, part) {
					t.Errorf("%s: %q lacks %q", name, text, part)
				}
			}
		}
	}
}

// A loss of the day is told however much else happened since, as long as Redis has the event.
func TestLookAtEvents_reachesAsFarBackAsRedis(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	q, err := queue.New(rdb, queue.Partition{Namespace: testredis.Namespace(t)}, queue.Caps{})
	if err != nil {
		t.Fatal(err)
	}
	pipe := rdb.Pipeline()
	for i := range queue.MaxEvents {
		kind := "schedule changed"
		if i == 0 {
			kind = "lost writes"
		}
		pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: q.Keys().Events, ID: fmt.Sprintf("%s-%d", msAt(0), i+1), Values: []any{"event", kind}})
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := &view{scene: &scene{now: secondsOn(60)}}
	if err := (&activity{q: q}).lookAtEvents(t.Context(), v); err != nil || len(v.Trouble) != 1 || v.Trouble[0].Kind != LostWrites {
		t.Errorf("%v, %+v", err, v.Trouble)
	}
}

// Each slot that was missed is counted in one incident: also if Redis freezes again as soon as the first time is over.
func TestLookAtIncidents_countsASlotOnce(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		for what, second := range map[string][2]int{"a while later": {34, 43}, "at once": {9, 43}} {
			q, err := queue.New(rdb, queue.Partition{Namespace: testredis.Namespace(t)}, queue.Caps{})
			if err != nil {
				t.Fatal(err)
			}
			events := slices.Concat(frozen(0, 9), frozen(second[0], second[1]))
			for i, line := range []string{"s@1000..8000 missed 8 outage", "s@9000..11000 missed 3 outage"} {
				// Redis notes the missed slots a moment after the new leader, and may do both in one millisecond.
				err := rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: q.Keys().History, ID: msAt([]int{9, 43}[i]) + "-1", Values: []any{"slots", line}}).Err()
				if err != nil {
					t.Fatal(err)
				}
			}
			v := &view{scene: &scene{now: secondsOn(120)}}
			if err := (&activity{q: q}).lookAtIncidents(t.Context(), v, events); err != nil || len(v.Trouble) != 2 {
				t.Fatalf("%s: %v, %+v", what, err, v.Trouble)
			}
			for i, n := range []int{8, 3} {
				if x := v.Trouble[i]; !strings.HasSuffix(x.Text, fmt.Sprintf("; %d slots were missed", n)) || !x.Since.Equal(secondsOn(i*second[0])) {
					t.Errorf("%s: since %v %q, want %d slots", what, x.Since, x.Text, n)
				}
			}
		}
	})
}
