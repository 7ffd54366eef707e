package main

import (
	"time"

	"github.com/onbeat/onbeat/consumer"
)

// consumer is the part of the config that says how tasks are run.
func (c *config) consumer() consumer.Config {
	d := consumer.Config{
		Concurrency: int(c.Concurrency), Queues: ints(c.Queues), Strict: c.Strict, Limits: ints(c.Limits),
	}
	if c.Drain != nil {
		if d.Drain = time.Duration(*c.Drain); d.Drain == 0 {
			d.Drain = -1 // said, not left out
		}
	}
	return d
}

func ints(m map[string]integer) map[string]int {
	if m == nil {
		return nil
	}
	out := make(map[string]int, len(m))
	for k, v := range m {
		out[k] = int(v)
	}
	return out
}
