package config

import (
	"strings"
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
		"durability: {replicas: -1}":               `x.yaml:1: durability.replicas "-1": `,
		"durability: {timeout: 1s}":                "x.yaml:1: durability.replicas: ",
		"durability: {strict: true}":               "x.yaml:1: durability.replicas: ",
		"\ndurability: {replicas: 1, timeout: 1m}": `x.yaml:2: durability.timeout "1m0s": `,
	} {
		if _, err := checked("x.yaml", yaml, testEnv()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", yaml, err, want)
		}
	}
}
