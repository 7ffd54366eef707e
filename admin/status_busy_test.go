package admin

import (
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
)

// Workers are busy if runs of users hold all of them for long, while tasks of users wait.
func TestStatus_workersAreBusyIfLongRunsOfUsersHoldThem(t *testing.T) {
	t.Parallel()
	run := func(id, instance string, lasts time.Duration) queue.Held {
		return queue.Held{ID: id, Instance: instance, At: noon.Add(-lasts)}
	}
	for name, c := range map[string]struct {
		held  []queue.Held
		waits string // the type that waits
		want  bool
	}{
		"two hang":                   {[]queue.Held{run("x", "a", time.Minute), run("y", "a", time.Minute)}, "job", true},
		"one is free":                {[]queue.Held{run("x", "a", time.Minute)}, "job", false},
		"one is the dispatcher's":    {[]queue.Held{run("x", "a", time.Minute), run("onbeat.notify:ops", "a", time.Minute)}, "job", false},
		"one is named like that":     {[]queue.Held{run("x", "a", time.Minute), run("onbeat.x@1000", "a", time.Minute)}, "job", true},
		"one is of another instance": {[]queue.Held{run("x", "a", time.Minute), run("y", "old", time.Minute)}, "job", false},
		"all are short":              {[]queue.Held{run("x", "a", time.Second), run("y", "a", 2*time.Second)}, "job", false},
		"one of them is short":       {[]queue.Held{run("x", "a", time.Minute), run("y", "a", time.Second)}, "job", false},
		"a message waits":            {[]queue.Held{run("x", "a", time.Minute), run("y", "a", time.Minute)}, "onbeat.notify", false},
	} {
		a := Instance{ID: "a", State: "ready", Leader: true, LeaseLeftMS: 1, Types: []string{"job", "onbeat.notify"}, Concurrency: 2}
		v := &view{scene: &scene{now: noon, list: InstanceList{Items: []Instance{a}}, held: c.held}, Status: Status{Asked: noon, Counts: StatusCounts{Workers: 2}}}
		v.lookAtWork(&queue.Counts{Lanes: []queue.LaneCount{{Lane: queue.Lane{Queue: "default", Type: c.waits}, Overdue: 1, Head: noon.Add(-30 * time.Second)}}}, nil)
		busy := false
		for _, l := range v.Trouble {
			busy = busy || l.Kind == WorkersBusy
		}
		if busy != c.want {
			t.Errorf("%s: %+v", name, v.Trouble)
		}
	}
}

// A person who starts a second replica because workers are busy must learn whether that helps.
func TestStatus_namesTheSettingByWhichInstancesAddWorkers(t *testing.T) {
	t.Parallel()
	for consume, want := range map[instance.Consume]bool{instance.ConsumeNewest: true, instance.ConsumeRelease: false, instance.ConsumeAll: false} {
		a := Instance{ID: "a", State: "ready", Leader: true, LeaseLeftMS: 1, Types: []string{"job"}, Concurrency: 1, Consume: consume}
		held := []queue.Held{{ID: "x", Instance: "a", At: noon.Add(-time.Minute)}}
		v := &view{scene: &scene{now: noon, list: InstanceList{Items: []Instance{a}}, held: held}, Status: Status{Asked: noon, Counts: StatusCounts{Workers: 1}}}
		v.lookAtWorkers([]Instance{a}, noon.Add(-30*time.Second))
		if len(v.Trouble) != 1 || strings.Contains(v.Trouble[0].Text, "consume: release") != want {
			t.Errorf("consume: %s: %+v", consume, v.Trouble)
		}
	}
}
