package main

import (
	"testing"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/testredis"
)

// Another number of partitions is a wrong config, for a command and for an instance: exit code 2.
func TestPartitions_anotherNumberIsAWrongConfig(t *testing.T) {
	t.Parallel()
	s := &shell{T: t, ns: testredis.Namespace(t), url: "redis://" + testredis.Client(t).Options().Addr}
	config := func(n string) string {
		return s.file("p"+n+".yaml", "partitions: "+n+"\napi: {listen: 'off'}\nschedules: [{name: a, every: 1h, task: echo}]\n")
	}
	s.must("enqueue", "echo", "-c", config("3"))
	for _, n := range []string{"1", "2", "4"} {
		s.fails(2, []string{"status", "-c", config(n)}, "3 partitions")
		if r := s.run("", "serve", "-c", config(n)); r.code != 2 {
			t.Errorf("serve with %s partitions: exit code %d", n, r.code)
		}
	}
}

// A user who takes one Redis for a cluster is told so.
func TestPartitions_oneRedisIsNoCluster(t *testing.T) {
	t.Parallel()
	s := &shell{T: t, ns: testredis.Namespace(t), url: "redis-cluster://" + testredis.Client(t).Options().Addr}
	for _, command := range []string{"status", "doctor", "audit"} {
		s.fails(1, []string{command}, "use redis://")
	}
}

// A list that has every schedule is whole, although some runs are not known yet.
func TestAbsent_isOnlyAPartition(t *testing.T) {
	t.Parallel()
	list := []admin.Unasked{{Source: "the runs since 12:00"}, {Source: "partition 2"}}
	if got := absent(list); len(got) != 1 || got[0] != list[1] {
		t.Errorf("%v", got)
	}
}
