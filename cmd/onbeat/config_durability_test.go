package main

import (
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/queue"
)

func TestConfig_durability(t *testing.T) {
	t.Parallel()
	c, err := parseConfig("x.yaml", []byte("durability: {replicas: 1, timeout: 50ms}\n"), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	a := &app{globals: &globals{Namespace: "x"}, env: testEnv()}
	target, err := a.targetOf(c)
	if err != nil {
		t.Fatal(err)
	}
	serves := (&serveCmd{}).dispatcher(a, c, "x", zerolog.Nop())
	for _, d := range []queue.Durability{target.durability, serves.Durability} {
		if d.Replicas != 1 || d.Timeout != 50*time.Millisecond {
			t.Errorf("%+v", d)
		}
	}
	for yaml, want := range map[string]string{
		"durability: {replicas: -1}":  `x.yaml:1: durability.replicas "-1": out of range (0 to 100; the default is 0)`,
		"\ndurability: {timeout: 1m}": `x.yaml:2: durability.timeout "1m0s": out of range (1ms to 2s; the default is 200ms)`,
		"durability: {replica: 1}":    "x.yaml:1: durability.replica: unknown field (did you mean replicas?)",
	} {
		if _, err := parseConfig("x.yaml", []byte(yaml), testEnv()); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", yaml, err, want)
		}
	}
}
