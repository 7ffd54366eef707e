package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/testredis"
)

func TestConfig_durability(t *testing.T) {
	t.Parallel()
	c, err := parseConfig("x.yaml", []byte("durability: {replicas: 1, timeout: 50ms, strict: true}\n"), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	a := &app{globals: &globals{Namespace: "x"}, env: testEnv()}
	target, err := a.targetOf(c)
	if err != nil {
		t.Fatal(err)
	}
	serves := (&serveCmd{}).dispatcher(a, c, "x", zerolog.Nop())
	for _, d := range []store.Durability{target.durability, serves.Durability} {
		if d.Replicas != 1 || d.Timeout != 50*time.Millisecond || !d.Strict {
			t.Errorf("%+v", d)
		}
	}
	for yaml, want := range map[string]string{
		"durability: {replicas: -1}":               `x.yaml:1: durability.replicas "-1": out of range (0 to 100; the default is 0)`,
		"durability: {timeout: 1s}":                "x.yaml:1: durability.replicas: missing: with a timeout alone nobody is waited for (for example 1)",
		"durability: {strict: true}":               "x.yaml:1: durability.replicas: missing: strict is about how many replicas have a write (as many as there are: then a failover repeats nothing)",
		"\ndurability: {replicas: 1, timeout: 1m}": `x.yaml:2: durability.timeout "1m0s": out of range (1ms to 2s; the default is 200ms)`,
		"durability: {replica: 1}":                 "x.yaml:1: durability.replica: unknown field (did you mean replicas?)",
	} {
		if _, err := parseConfig("x.yaml", []byte(yaml), testEnv()); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", yaml, err, want)
		}
	}
}

// Who asks for replicas is told when there are too few, and who writes to a replica what to do.
func TestDurability_byHand(t *testing.T) {
	t.Parallel()
	primary, replica := testredis.Replicated(t)
	s := &shell{T: t, ns: testredis.Namespace(t), url: primary.URL()}
	config := filepath.Join(t.TempDir(), "onbeat.yaml")
	write := func(replicas int) {
		t.Helper()
		if err := os.WriteFile(config, fmt.Appendf(nil, "durability: {replicas: %d, timeout: 1s}\n", replicas), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	if r := s.run("", "enqueue", "echo", "--config", config); r.code != 0 || r.err != "" {
		t.Errorf("with the replica: %+v", r)
	}
	if out := s.must("doctor", "--config", config); !strings.Contains(out, "primary with 1 replicas; a failover") {
		t.Errorf("%s", out)
	}
	write(2)
	if r := s.run("", "enqueue", "echo", "--config", config); r.code != 0 || !strings.Contains(r.err, "1 of the 2 replicas") {
		t.Errorf("with one replica of two: %+v", r)
	}
	if out := s.must("doctor", "--config", config); !strings.Contains(out, "durability asks for 2") {
		t.Errorf("%s", out)
	}
	s.url = replica.URL()
	for _, args := range [][]string{{"enqueue", "echo"}, {"lock", "run", "-w", "0.3", "x", "--", "true"}} {
		r := s.run("", args...)
		if r.code == 0 || !strings.Contains(r.err, namePrimary) || strings.Contains(r.err, "script:") || strings.Contains(r.err, "is it running") {
			t.Errorf("%v on a replica: %+v", args, r)
		}
	}
}
