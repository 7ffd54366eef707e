package consumer

import (
	"fmt"
	"testing"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// The settlements that are kept are bounded in number and in bytes. The newest are kept.
func TestLately_isBounded(t *testing.T) {
	t.Parallel()
	var l lately
	for i := range 3 * mostLately {
		l.add([]queue.Settlement{{ID: fmt.Sprint(i), Fence: int64(i), Task: &task.Task{}}})
	}
	m := l.by()
	if _, ok := m[settledKey{fmt.Sprint(3*mostLately - 1), 3*mostLately - 1}]; !ok || len(m) != mostLately || cap(l.list) > 8*mostLately {
		t.Errorf("%d are kept in room for %d, the newest: %v", len(m), cap(l.list), ok)
	}
	record := make([]byte, 1<<20)
	for i := range 100 {
		l.add([]queue.Settlement{{ID: "big", Fence: int64(i), Record: record}})
	}
	m = l.by()
	if _, ok := m[settledKey{"big", 99}]; !ok || len(m) != mostLatelyBytes/len(record) || l.bytes != mostLatelyBytes {
		t.Errorf("%d big ones are kept, of %d bytes, the newest: %v", len(m), l.bytes, ok)
	}
	for _, s := range m {
		if s.Task != nil {
			t.Fatal("a task is kept besides its record")
		}
	}
	l.add([]queue.Settlement{{ID: "small"}})
	if m := l.by(); len(m) != mostLatelyBytes/len(record)+1 {
		t.Errorf("%d are kept", len(m))
	}
	l = lately{share: 16}
	for i := range mostLately {
		l.add([]queue.Settlement{{ID: fmt.Sprint(i)}})
	}
	if m := l.by(); len(m) != mostLately/16 {
		t.Errorf("one of sixteen partitions keeps %d", len(m))
	}
}
