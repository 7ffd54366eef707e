package onbeat

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/outbox"
	"github.com/onbeat/onbeat/task"
)

// Outbox returns an outbox of this namespace: its Add enqueues tasks within a transaction of a SQL database. It checks and encrypts
// payloads as Enqueue does. It needs neither Run nor Config.Outbox, nor Redis: some instance has to look into the database.
func (d *Dispatcher) Outbox() *outbox.Outbox {
	return &outbox.Outbox{
		Namespace: d.cfg.Namespace, Limits: task.Limits{Payload: d.cfg.PayloadLimit}, Check: d.checkPayload, Secret: d.cfg.Secret,
		Keys: d.q.Seal(), TracerProvider: d.cfg.TracerProvider,
	}
}

func (c Config) checkOutbox() error {
	if c.Outbox == nil {
		return nil
	}
	return c.Outbox.Validate()
}

// mover returns what moves the tasks of the outbox, or nil without one.
func (d *Dispatcher) mover(log zerolog.Logger) (*outbox.Mover, error) {
	if d.cfg.Outbox == nil {
		return nil, nil //nolint:nilnil // no outbox has no mover
	}
	return outbox.NewMover(outbox.MoverConfig{
		Database: d.cfg.Outbox, Redis: d.rdb, Namespace: d.cfg.Namespace, Producer: d.producer, Observer: d.cfg.Observer, Log: log,
	})
}

// move moves tasks while the instance is registered and does not drain.
func move(m *outbox.Mover, s *instance.Session) error {
	if m == nil {
		return nil
	}
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	go func() {
		select {
		case <-s.Draining():
			stop()
		case <-ctx.Done():
		}
	}()
	return m.Run(ctx)
}
