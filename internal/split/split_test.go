package split_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/task"
)

// These answers decided where the keys in Redis lie, so they never change.
func TestMap_neverMovesAName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		partitions int
	}{{"warm-cache", 3}, {"warm-cache", 16}, {"invoice 42", 256}, {"", 7}, {"日報", 16}} {
		h := fnv.New64a()
		_, _ = h.Write([]byte(c.name))
		sum := h.Sum64()
		want := int((sum>>32^sum&0xffffffff)%uint64(c.partitions)) + 1
		if got := (split.Map{Partitions: c.partitions}).Of(c.name); got != want {
			t.Errorf("%q of %d: %d, want %d", c.name, c.partitions, got, want)
		}
	}
	m := split.Map{Partitions: 16}
	if got := []int{m.Of("warm-cache"), m.Of("nightly-report"), m.Of("a"), m.Of("b")}; !slices.Equal(got, []int{3, 14, 1, 10}) {
		t.Errorf("%v", got)
	}
}

func TestMap_spreadsEvenly(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{2, 3, 16, 255, 256} {
		m, n := split.Map{Partitions: partitions}, make([]int, partitions)
		for i := range 1000 * partitions {
			n[m.Of(fmt.Sprintf("job-%d", i))-1]++
		}
		if least, most := slices.Min(n), slices.Max(n); least < 800 || most > 1200 {
			t.Errorf("%d partitions: %d to %d of 1000", partitions, least, most)
		}
	}
}

func TestMap_findsWhatItMade(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := split.Map{Partitions: rapid.IntRange(0, split.Most).Draw(t, "partitions")}
		p := rapid.IntRange(1, max(m.Partitions, 1)).Draw(t, "partition")
		now := time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "now"))
		id, other := m.NewID(now, p), m.NewID(now, p)
		if got, ok := m.ID(id); !ok || got != p || id == other || len(id) != len(task.NewID(now)) || id[:8] != task.NewID(now)[:8] {
			t.Fatalf("%q %q: %d, want %d", id, other, got, p)
		}
		schedule := rapid.StringMatching(`[a-z][a-z0-9:/-]{0,20}`).Draw(t, "schedule")
		for _, id := range []string{task.SlotID(schedule, now), task.SlotID(schedule, now) + "+2", schedule + "!" + task.NewID(now)} {
			if got, ok := m.ID(id); !ok || got != m.Of(schedule) {
				t.Fatalf("%q: %d, its schedule %d", id, got, m.Of(schedule))
			}
		}
	})
}

func TestMap_ofOwnTasks(t *testing.T) {
	t.Parallel()
	if p, ok := (split.Map{Partitions: 4}).ID(task.BulkType + ":x:1"); ok {
		t.Errorf("%d", p)
	}
	if p, ok := (split.Map{}).ID(task.BulkType + ":x:1"); !ok || p != 1 {
		t.Errorf("%d", p)
	}
}

func TestMap_ofATask(t *testing.T) {
	t.Parallel()
	m := split.Map{Partitions: 5, Limited: func(typ string) bool { return typ == "limited" }}
	in := func(p int) string { // a name in a partition
		for i := 0; ; i++ {
			if name := fmt.Sprint("n", i); m.Of(name) == p {
				return name
			}
		}
	}
	home := m.Of("limited")
	for _, c := range []struct {
		name    string
		task    task.Task
		want    int
		refused string
	}{
		{"of nothing", task.Task{Type: "x"}, 0, ""},
		{"of an ID", task.Task{Type: "x", ID: in(3)}, 3, ""},
		{"of a unique key", task.Task{Type: "x", UniqueKey: in(2)}, 2, ""},
		{"of a key", task.Task{Type: "x", Key: in(4)}, 4, ""},
		{"of a limit", task.Task{Type: "limited"}, home, ""},
		{"of a slot", task.Task{Type: "x", ID: task.SlotID(in(1), time.UnixMilli(7))}, 1, ""},
		{"of its own", task.Task{Type: "x", ID: task.BulkType + ":x:1", Key: in(2)}, 2, ""},
		{"that agree", task.Task{Type: "x", Key: "same", UniqueKey: "same", ID: "same"}, m.Of("same"), ""},
		{"key and unique key", task.Task{Type: "x", Key: in(1), UniqueKey: in(2)}, 0, "unique"},
		{"key and ID", task.Task{Type: "x", Key: in(1), ID: in(2)}, 0, "id"},
		{"key and limit", task.Task{Type: "limited", Key: in(home%5 + 1)}, 0, "type"},
		{"limit and ID", task.Task{Type: "limited", ID: in(home%5 + 1)}, 0, "id"},
	} {
		got, err := m.Task(&c.task)
		e, _ := errors.AsType[*task.FieldError](err)
		if got != c.want || (e == nil) != (c.refused == "") || e != nil && e.Field != c.refused {
			t.Errorf("%s: %d %v, want %d %q", c.name, got, err, c.want, c.refused)
		}
		if got, err := (split.Map{}).Task(&c.task); got != 1 || err != nil {
			t.Errorf("%s, of one: %d %v", c.name, got, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, split.Most} {
		if err := split.Check(n); err != nil {
			t.Error(err)
		}
	}
	for _, n := range []int{-1, split.Most + 1} {
		if err := split.Check(n); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

func BenchmarkNewID(b *testing.B) {
	for _, partitions := range []int{1, 3, 16, 256} {
		b.Run(fmt.Sprint(partitions), func(b *testing.B) {
			m := split.Map{Partitions: partitions}
			for b.Loop() {
				m.NewID(time.UnixMilli(1e12), partitions)
			}
		})
	}
}
