package onbeat

import (
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/producer"
)

// Tests look at what callers do not get.

func (d *Dispatcher) Queue() *queue.Queue { return d.parts[0].q }

func (d *Dispatcher) Instances() (*instance.Registry, error) {
	return instance.NewRegistry(d.parts[0].rdb, d.cfg.Namespace)
}

func (d *Dispatcher) Schedules() *producer.Schedules {
	return producer.NewSchedules(d.parts[0].producer, nil)
}

// TellOfArchive has targets hear of an archive that has been behind for that long.
func (d *Dispatcher) TellOfArchive(behindFor time.Duration) { d.behindFor = behindFor }

// BeatEvery has the dispatcher beat more often than a config may.
func (d *Dispatcher) BeatEvery(every time.Duration) { d.cfg.Heartbeat.Every = every }

// OffBeat is what stops the heartbeat of a dispatcher.
var OffBeat = offBeat

// Declared is what the release declares now.
func (d *Dispatcher) Declared() []Schedule { return d.declared() }
