package config

import (
	"testing"
	"time"
)

func TestConfig_durability(t *testing.T) {
	t.Parallel()
	c, err := checked("x.yaml", "durability: {replicas: 1, timeout: 50ms, strict: true}\n", testEnv())
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Dispatcher.Durability; d.Replicas != 1 || d.Timeout != 50*time.Millisecond || !d.Strict {
		t.Errorf("%+v", d)
	}
	for yaml, want := range map[string]string{
		"durability: {replicas: -1}":               `x.yaml:1: durability.replicas "-1": out of range (0 to 100; the default is 0)`,
		"durability: {timeout: 1s}":                "x.yaml:1: durability.replicas: missing: durability.timeout needs it (for example 1)",
		"durability: {strict: true}":               "x.yaml:1: durability.replicas: missing: durability.strict needs it (as many as Redis has: then a failover repeats nothing)",
		"\ndurability: {replicas: 1, timeout: 1m}": `x.yaml:2: durability.timeout "1m0s": out of range (1ms to 2s; the default is 200ms)`,
		"durability: {replica: 1}":                 "x.yaml:1: durability.replica: unknown field (did you mean replicas?)",
	} {
		if _, err := checked("x.yaml", yaml, testEnv()); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", yaml, err, want)
		}
	}
}
