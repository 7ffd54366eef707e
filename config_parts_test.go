package onbeat

import (
	"reflect"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/onbeat/onbeat/instance"
)

// Every setting of an instance and of a consumer can be made in a Config, and reaches it. The front door has one flat Config,
// because its users should not have to know which room a setting belongs to; so this test finds the setting that was
// forgotten on the way.
func TestConfig_reachesItsParts(t *testing.T) {
	t.Parallel()
	c := Config{
		Durability: Durability{Replicas: 1}, Queues: map[string]int{"q": 1}, Limits: map[string]int{"t": 1},
		Secret: map[string][]string{"t": {"*"}},
		Hurry:  make(chan struct{}), Observer: struct{ Observer }{}, TracerProvider: noop.NewTracerProvider(),
	}
	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(time.Second))
		case reflect.Func:
			f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) []reflect.Value { return nil }))
		}
	}
	// The dispatcher makes these itself: the ID of an instance, what it handles, its log, what several partitions share, and the labels
	// of the context of Run.
	made := map[string]bool{"ID": true, "Types": true, "Queues": true, "Log": true, "Pool": true, "Order": true, "Labels": true}
	if len(c.consumer().Queues) == 0 {
		t.Error("consumer.Config.Queues is not set by a Config")
	}
	instances := c.instance()
	instances.Observer = struct{ instance.Observer }{} // that of a partition: see Observer.Bind
	for _, part := range []any{instances, c.consumer()} {
		p := reflect.ValueOf(part)
		for i := range p.NumField() {
			if name := p.Type().Field(i).Name; p.Field(i).IsZero() && !made[name] {
				t.Errorf("%T.%s is not set by a Config", part, name)
			}
		}
	}
}
