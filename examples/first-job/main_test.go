package main

import (
	"testing"

	"github.com/onbeat/onbeat/examples/internal/program"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestMain(m *testing.M) { testredis.Main(m) }

func TestFirstJob(t *testing.T) {
	t.Parallel()
	p := program.Start(t, program.Build(t, "."), []string{"REDIS_URL=" + testredis.Private(t).URL()})
	p.Says("warming https://shop.example/", 2)
	p.Stop()
}
