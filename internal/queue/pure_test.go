package queue_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/queue"
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

// The scripts of instance cut the events to the largest cap that a config may set.
func TestCaps_ofEventsAreThoseOfTheScripts(t *testing.T) {
	t.Parallel()
	lua, err := os.ReadFile("../../instance/scripts/lib_elect.lua")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("local cap_events = %d ", queue.MaxEvents); !strings.Contains(string(lua), want) {
		t.Errorf("lib_elect.lua has no %q", want)
	}
	p := queue.Partition{Namespace: "x"}
	if _, err := queue.New(nil, p, queue.Caps{Events: queue.MaxEvents}); err != nil {
		t.Error(err)
	}
	_, err = queue.New(nil, p, queue.Caps{Events: queue.MaxEvents + 1})
	if refused, ok := errors.AsType[*task.FieldError](err); !ok || refused.Field != "events" {
		t.Errorf("%v", err)
	}
}
