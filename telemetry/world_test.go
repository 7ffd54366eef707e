package telemetry_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/telemetry"
)

const patience = 30 * time.Second

// world is a dispatcher with metrics.
type world struct {
	testing.TB
	*onbeat.Dispatcher
	rdb     redis.UniversalClient
	metrics *telemetry.Metrics
	reg     *prometheus.Registry
}

func newWorld(t testing.TB, rdb redis.UniversalClient, opts telemetry.Options, change ...func(*onbeat.Config)) *world {
	t.Helper()
	w := &world{TB: t, rdb: rdb, reg: prometheus.NewPedanticRegistry()}
	m, err := telemetry.NewMetrics(w.reg, opts)
	w.must(err)
	w.metrics = m
	cfg := onbeat.Config{Namespace: testredis.Namespace(t), Observer: m}
	for _, f := range change {
		f(&cfg)
	}
	w.Dispatcher, err = onbeat.New(rdb, cfg)
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// start runs the dispatcher until stop, or the end of the test.
func (w *world) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	var stopped atomic.Bool
	stop = func() {
		cancel()
		if !stopped.Swap(true) {
			if err := <-over; err != nil {
				w.Errorf("run: %v", err)
			}
		}
	}
	w.Cleanup(stop)
	return stop
}

// samples are the values of all series, by name and labels: `onbeat_runs_total{type="job",outcome="done"}`. The value of a
// histogram is its count.
type samples map[string]float64

func (w *world) scrape() samples {
	w.Helper()
	families, err := w.reg.Gather()
	w.must(err)
	out := samples{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			out[seriesOf(f, m)] = valueOf(m)
		}
	}
	return out
}

func seriesOf(f *dto.MetricFamily, m *dto.Metric) string {
	var labels []string
	for _, l := range m.GetLabel() {
		labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
	}
	if len(labels) == 0 {
		return f.GetName()
	}
	return f.GetName() + "{" + strings.Join(labels, ",") + "}"
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.GetCounter() != nil:
		return m.GetCounter().GetValue()
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue()
	}
	return float64(m.GetHistogram().GetSampleCount())
}

// want fails the test for each series that has another value, or is not there.
func (s samples) want(t testing.TB, series map[string]float64) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(series)) {
		if got, ok := s[name]; !ok || got != series[name] {
			t.Errorf("%s is %v (there: %v), want %v", name, got, ok, series[name])
		}
	}
}

// of returns the series of one metric.
func (s samples) of(metric string) (names []string) {
	for name := range s {
		if name == metric || strings.HasPrefix(name, metric+"{") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// eventually scrapes until a series has a value.
func (w *world) eventually(series string, want float64) {
	w.Helper()
	testredis.Eventually(w, patience, func() error {
		if got, ok := w.scrape()[series]; !ok || got != want {
			return errors.New("not yet")
		}
		return nil
	}, "%s is %v", series, want)
}
