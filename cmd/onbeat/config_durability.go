package main

import (
	"time"

	"github.com/onbeat/onbeat/store"
)

// durabilityConfig says for how many replicas a write waits.
type durabilityConfig struct {
	Replicas integer  `yaml:"replicas"`
	Timeout  duration `yaml:"timeout"`
	Strict   bool     `yaml:"strict"`
}

func (d durabilityConfig) queue() store.Durability {
	return store.Durability{Replicas: int(d.Replicas), Timeout: time.Duration(d.Timeout), Strict: d.Strict}
}
