package main

import (
	"testing"

	"github.com/onbeat/onbeat/examples/internal/program"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestMain(m *testing.M) { testredis.Main(m) }

func TestLock_oneOfThreeMakesTheReport(t *testing.T) {
	t.Parallel()
	file, env := program.Build(t, "."), []string{"REDIS_URL=" + testredis.Private(t).URL()}
	first := program.Start(t, file, env)
	first.Says("making the report with fence", 1)
	for range 2 {
		other := program.Start(t, file, env)
		other.Ends()
		if other.Count("another machine makes the report") != 1 || other.Count("making") != 0 {
			t.Errorf("the other said %q", other.Said())
		}
	}
	first.Ends()
	if first.Count("made the report") != 1 {
		t.Errorf("the first said %q", first.Said())
	}
}
