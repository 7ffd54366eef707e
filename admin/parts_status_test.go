package admin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
)

// The status of a namespace that is split has each line once: those that partitions share word for word are one, which names them, and
// no figure of one partition stands for all.
func TestStatus_joinsThoseOfPartitions(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_000_000)
	lines := func(list ...Trouble) []Trouble { return list }
	parts := []Status{
		{Asked: at, Leader: "a", Release: "v2", Trouble: lines(
			Trouble{Kind: "dead", Name: "mail", Text: "3 tasks are dead", Since: at},
			Trouble{Kind: "no-leader", Text: "nobody leads", Since: at},
			Trouble{Kind: "missed", Name: "beat", Text: "missed", ofSchedule: true},
		), Counts: StatusCounts{Schedules: 2, Bad: 1, Dead: 3, Running: 1}, working: []Instance{{ID: "a"}, {ID: "b"}}},
		{Asked: at.Add(-time.Second), Leader: "b", Release: "v2", Trouble: lines(
			Trouble{Kind: "dead", Name: "mail", Text: "4 tasks are dead", Since: at},
			Trouble{Kind: "no-leader", Text: "nobody leads", Since: at.Add(-time.Hour)},
		), Counts: StatusCounts{Schedules: 3, Well: 3, Dead: 4, Running: 2}, working: []Instance{{ID: "b"}}},
		{Asked: at, Leader: "a", Release: "v2", Trouble: lines(
			Trouble{Kind: "no-leader", Text: "nobody leads", Warning: true},
			Trouble{Kind: "no-leader", Text: "nobody leads", Since: at},
			Trouble{Kind: "no-leader", Text: "nobody leads", Since: at}, // of another cause: it stays a line of its own
		), CouldNotAsk: []Unasked{{"archive", "away"}}, More: 2},
	}
	var s Status
	for i := range parts {
		s.join(i+1, &parts[i])
	}
	type line struct {
		kind, text string
		warning    bool
		parts      string
	}
	var got []line
	for _, x := range s.Trouble {
		text := ""
		for _, p := range x.Partitions {
			text += string(rune('0' + p))
		}
		got = append(got, line{x.Kind, x.Text, x.Warning, text})
	}
	want := []line{
		{"dead", "3 tasks are dead", false, "1"}, {"no-leader", "nobody leads", false, "123"}, {"missed", "missed", false, ""},
		{"dead", "4 tasks are dead", false, "2"}, {"no-leader", "nobody leads", true, "3"}, {"no-leader", "nobody leads", false, "3"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if since := s.Trouble[1].Since; !since.Equal(at.Add(-time.Hour)) {
		t.Errorf("since %v, want the earliest", since)
	}
	if !s.Asked.Equal(at.Add(-time.Second)) || s.More != 2 || len(s.CouldNotAsk) != 1 || len(s.working) != 2 {
		t.Errorf("%+v", s)
	}
	if len(s.Leads) != 2 || !slices.Equal(s.Leads[0].Partitions, []int{1, 3}) || !slices.Equal(s.Leads[1].Partitions, []int{2}) {
		t.Errorf("%+v", s.Leads)
	}
	if c := s.Counts; c.Schedules != 5 || c.Well != 3 || c.Bad != 1 || c.Dead != 7 || c.Running != 3 {
		t.Errorf("%+v", c)
	}
}

// The workers are one pool for all partitions: an instance with a free one is idle where tasks wait, and all are busy if they are so in sum.
func TestStatus_countsTheWorkersOfAllPartitions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		held [2][]string // the IDs of the runs in each partition
		want string      // the kind of trouble
		two  bool        // each partition has an instance of its own, as with consume: newest
		both bool        // tasks wait in each, and not only in the second
	}{
		"all are busy in another":       {[2][]string{{"x", "y"}, nil}, WorkersBusy, false, false},
		"all are busy, but in no one":   {[2][]string{{"x"}, {"y"}}, WorkersBusy, false, false},
		"one is free":                   {[2][]string{{"x"}, nil}, InstanceIdle, false, false},
		"one run is the dispatcher's":   {[2][]string{{"x", "onbeat.notify:ops"}, nil}, InstanceIdle, false, false},
		"one is free where tasks wait":  {[2][]string{nil, {"y"}}, "", false, false},
		"all are free, and tasks wait":  {[2][]string{nil, nil}, InstanceIdle, false, false},
		"all are busy for a moment":     {[2][]string{{"short", "y"}, nil}, "", false, false},
		"those who lead there are busy": {[2][]string{nil, {"x", "y"}}, WorkersBusy, true, false},
		"others are busy elsewhere":     {[2][]string{{"x", "y"}, nil}, InstanceIdle, true, false},
		"tasks wait in both":            {[2][]string{{"x"}, {"y"}}, WorkersBusy, false, true},
		"more are busy than it may run": {[2][]string{{"x", "y"}, {"z"}}, WorkersBusy, false, false},
	} {
		var all []numbered[Status]
		for i, ids := range c.held {
			id := "a"
			if c.two && i == 1 {
				id = "b"
			}
			worker := Instance{ID: id, State: "ready", Leader: true, LeaseLeftMS: 1, Types: []string{"job"}, Concurrency: 2, Running: int64(len(ids))}
			v := &view{scene: &scene{now: noon, list: InstanceList{Items: []Instance{worker}}}, Status: Status{Asked: noon.Add(time.Duration(i) * time.Second), More: 1}} // it left out a warning
			for _, run := range ids {
				lasts := time.Minute
				if run == "short" {
					lasts = time.Second
				}
				v.held = append(v.held, queue.Held{ID: run, Instance: id, At: noon.Add(-lasts)})
			}
			waiting := int64(i)
			if c.both {
				waiting = 1
			}
			v.lookAtInstances()
			v.lookAtWork(&queue.Counts{Lanes: []queue.LaneCount{
				{Lane: queue.Lane{Queue: "default", Type: "job"}, Overdue: waiting, Head: noon.Add(-40 * time.Second)},
			}}, nil)
			all = append(all, numbered[Status]{i + 1, v.done()})
		}
		s := joinStatus(all, nil)
		kinds := ""
		for _, x := range s.Trouble {
			kinds += x.Kind
		}
		if kinds != c.want || s.Well != (c.want == "") || s.Counts.Wrong != len(s.Trouble) || s.More != 2 {
			t.Errorf("%s: %+v, %d are wrong, and %d more", name, s.Trouble, s.Counts.Wrong, s.More)
		}
	}
}

// A pause of one partition excuses nothing in the others.
func TestStatus_ofAPartitionThatIsPaused(t *testing.T) {
	t.Parallel()
	var all []numbered[Status]
	for i, until := range []time.Time{noon.Add(time.Minute), {}} {
		v := &view{scene: &scene{now: noon, list: InstanceList{PausedUntil: until}}, Status: Status{Asked: noon}}
		v.add(Trouble{Kind: Waiting, Name: fmt.Sprint("job", i+1)})
		if !until.IsZero() {
			v.add(Trouble{Kind: string(Paused), Warning: true})
		}
		all = append(all, numbered[Status]{i + 1, v.done()})
	}
	var got []string
	s := joinStatus(all, nil)
	for _, x := range s.Trouble {
		got = append(got, fmt.Sprintf("%s %s %v", x.Kind, x.Name, x.Warning))
	}
	if want := []string{"waiting job2 false", "paused  true", "waiting job1 true"}; !slices.Equal(got, want) || s.Well || s.Counts.Wrong != 1 {
		t.Errorf("%q of %+v", got, s.Counts)
	}
}

// Figures that say the same are added up, and an incident that shows in several partitions is one line, with the slots of all.
func TestStatus_addsUpThoseOfPartitions(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_000_000).UTC()
	dead := func(n int64, cause string) Trouble {
		say := func(n int64) string { return fmt.Sprint(n, " failed: ", cause) }
		return Trouble{Kind: DeadTasks, Name: "mail", Text: say(n), sum: sum{n, cause, say}}
	}
	cut := func(from time.Duration, lead string, missed int64) Trouble {
		n := &incident{
			from: at.Add(from), to: at.Add(from + 10*time.Second), since: at.Add(from + 9*time.Second), paused: 9 * time.Second,
			lost: []who{{"a", "pod", "v1"}}, back: map[string]bool{"a": true}, leads: who{lead, "pod", "v1"}, missed: missedSlots{n: missed},
		}
		return n.trouble()
	}
	var s Status
	for i, lines := range [][]Trouble{
		{dead(3, "x"), cut(0, "a", 2)}, {dead(1, "x"), dead(2, "y"), cut(time.Second, "b", 3)}, {dead(1, "x"), cut(10*time.Minute, "a", 7)},
	} {
		s.join(i+1, &Status{Asked: at, Trouble: lines})
	}
	var got []string
	for _, x := range s.Trouble {
		got = append(got, fmt.Sprint(x.Partitions, " ", x.Text))
	}
	want := []string{"[1 2 3] 5 failed: x", "[1 2] a (v1) was cut off", "[2] 2 failed: y", "[3] a (v1) was cut off"}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i, text := range want {
		if !strings.HasPrefix(got[i], text) {
			t.Errorf("%q, want %q", got[i], text)
		}
	}
	if both := s.Trouble[1]; !strings.Contains(both.Text, "5 slots were missed") || !both.Until.Equal(at.Add(11*time.Second)) || strings.Contains(both.Text, "b (v1) leads") {
		t.Errorf("%+v", both)
	}
}
