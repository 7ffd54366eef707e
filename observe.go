package onbeat

import (
	"github.com/onbeat/onbeat/consumer"
	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/archiver"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/outbox"
	"github.com/onbeat/onbeat/producer"
	"github.com/redis/go-redis/v9"
)

// Observer is told what a dispatcher does, as it happens. Each room says what it tells; none waits for more than the call. Package
// telemetry has one that keeps metrics.
type Observer interface {
	consumer.Observer
	producer.Observer
	instance.Observer
	outbox.Observer
	store.Observer
	archiver.Observer
	notify.Observer
	// Bind tells the observer of which namespace it is told, so that it may read there. [New] calls it before anything happens, and
	// returns its error.
	Bind(rdb redis.UniversalClient, namespace string) error
}
