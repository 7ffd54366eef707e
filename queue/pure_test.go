package queue_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

func TestParseLane(t *testing.T) {
	t.Parallel()
	for _, l := range []queue.Lane{lane("job"), {Queue: "q.a", Priority: task.High, Type: "a:b/c"}, {Queue: "q", Priority: task.Low, Type: "t"}} {
		got, err := queue.ParseLane(l.String())
		if err != nil || got != l {
			t.Errorf("%v: got %v, %v", l, got, err)
		}
	}
	for _, s := range []string{"", "q", "q|normal", "q|urgent|t"} {
		if l, err := queue.ParseLane(s); err == nil {
			t.Errorf("%q was read as %v", s, l)
		}
	}
}

func TestPartition_names(t *testing.T) {
	t.Parallel()
	same(t, "prefix", queue.Partition{Namespace: "shop"}.Prefix(), "onbeat:{shop}:")
	same(t, "prefix", queue.Partition{Namespace: "shop", Number: 3}.Prefix(), "onbeat:{shop#3}:")
	for _, ns := range []string{"", "a{b", "a b", "a*", strings.Repeat("x", 129)} {
		if _, err := queue.New(nil, queue.Partition{Namespace: ns}, queue.Caps{}); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("namespace %q: %v", ns, err)
		}
	}
}
