package main

import (
	"testing"

	"github.com/onbeat/onbeat/examples/internal/program"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestMain(m *testing.M) { testredis.Main(m) }

func TestTyped_sendsOnceThoughItStartsTwice(t *testing.T) {
	t.Parallel()
	file, env := program.Build(t, "."), []string{"REDIS_URL=" + testredis.Private(t).URL(), "RELEASE=v1"}
	first := program.Start(t, file, env)
	first.Says("sent inv-42", 1)
	first.Stop()
	second := program.Start(t, file, env) // enqueues the same invoice, which its unique key refuses
	second.Says("inv-42 was enqueued before", 1)
	second.Stop()
	if n := second.Count("sent inv-42"); n != 0 {
		t.Errorf("the invoice was sent %d times more", n)
	}
}
