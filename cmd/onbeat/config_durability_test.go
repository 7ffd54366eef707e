package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestTarget_takesItsDurabilityFromTheConfig(t *testing.T) {
	t.Parallel()
	f, err := config.Parse("x.yaml", []byte("namespace: x\ndurability: {replicas: 1, timeout: 50ms, strict: true}\n"), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	target, err := (&app{globals: &globals{}, env: testEnv()}).targetOf(f)
	if err != nil {
		t.Fatal(err)
	}
	if d := target.cfg.Durability; d.Replicas != 1 || d.Timeout != 50*time.Millisecond || !d.Strict {
		t.Errorf("%+v", d)
	}
}

// A user who asks for replicas learns when there are too few. A user who writes to a replica gets a hint.
func TestDurability_byHand(t *testing.T) {
	t.Parallel()
	primary, replica := testredis.Replicated(t)
	s := &shell{T: t, ns: testredis.Namespace(t), url: primary.URL()}
	file := filepath.Join(t.TempDir(), "onbeat.yaml")
	write := func(replicas int) {
		t.Helper()
		if err := os.WriteFile(file, fmt.Appendf(nil, "durability: {replicas: %d, timeout: 1s}\n", replicas), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	if r := s.run("", "enqueue", "echo", "--config", file); r.code != 0 || r.err != "" {
		t.Errorf("with the replica: %+v", r)
	}
	if out := s.must("doctor", "--config", file); !strings.Contains(out, "primary with 1 replicas; a failover") {
		t.Errorf("%s", out)
	}
	write(2)
	if r := s.run("", "enqueue", "echo", "--config", file); r.code != 0 || !strings.Contains(r.err, "1 of the 2 replicas") {
		t.Errorf("with one replica of two: %+v", r)
	}
	if out := s.must("doctor", "--config", file); !strings.Contains(out, "durability asks for 2") {
		t.Errorf("%s", out)
	}
	s.url = replica.URL()
	for _, args := range [][]string{{"enqueue", "echo"}, {"lock", "run", "-w", "0.3", "x", "--", "true"}} {
		r := s.run("", args...)
		if r.code == 0 || !strings.Contains(r.err, admin.PrimaryHint("redis://")) || strings.Contains(r.err, "script:") || strings.Contains(r.err, "is it running") {
			t.Errorf("%v on a replica: %+v", args, r)
		}
	}
}
