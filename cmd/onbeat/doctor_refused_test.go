package main

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/doctor"
	"github.com/onbeat/onbeat/internal/testredis"
)

// Where Redis refuses writes, the doctor shows its table, and fails.
func TestDoctor_failsWhereMemoryIsFull(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	s := &shell{T: t, ns: testredis.Namespace(t), url: srv.URL(), rdb: srv.Client()}
	s.must("enqueue", "mine.own")
	if err := s.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	d := diagnose(t, s, 1)
	for _, name := range []string{"writes", "memory"} {
		if c := d.of(name); c.State != doctor.Fail || !strings.Contains(c.Hint, "raise maxmemory") {
			t.Errorf("%s: %+v", name, c)
		}
	}
	for _, name := range []string{"namespace", "latency"} {
		if c := d.of(name); c.State != doctor.OK && (name != "latency" || c.State != doctor.Warn) { // a busy machine is slow
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestDoctor_failsWhereTheDiskIsFull(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs a folder that takes no file, not even one of root")
	}
	srv := testredis.Private(t, "--dir", "/proc", "--save", "3600 1000000")
	s := &shell{T: t, ns: testredis.Namespace(t), url: srv.URL(), rdb: srv.Client()}
	s.must("enqueue", "mine.own")
	if err := s.rdb.BgSave(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, 30*time.Second, func() bool {
		err := s.rdb.Ping(t.Context()).Err()
		return err != nil && strings.Contains(err.Error(), "MISCONF")
	}, "Redis takes writes still")
	d := diagnose(t, s, 1)
	if c := d.of("writes"); c.State != doctor.Fail || !strings.Contains(c.Detail, "MISCONF") || !strings.Contains(c.Hint, "disk") {
		t.Errorf("%+v", c)
	}
	if c := d.of("persistence"); c.State != doctor.Fail || !strings.Contains(c.Detail, "the last write to disk failed") {
		t.Errorf("%+v", c)
	}
	for _, name := range []string{"namespace", "latency", "scripts", "rights"} {
		if c := d.of(name); c.State != doctor.OK && (name != "latency" || c.State != doctor.Warn) { // a busy machine is slow
			t.Errorf("%s: %+v", name, c)
		}
	}
}
