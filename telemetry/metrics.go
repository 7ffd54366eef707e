package telemetry

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/singleflight"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/outbox"
	"github.com/onbeat/onbeat/producer"
)

// Options tune metrics. The zero value is ready to use.
type Options struct {
	// Version and Release are the labels of onbeat_build_info: the version of the program, and the release that it runs.
	Version, Release string
	// Schedules is how many schedules have a series of their own, the first by name. The others share one, "other". Default 1000;
	// negative: all have one.
	Schedules int
	// Names is how many queues, and how many types, have series of their own in each metric. The others share one, "other".
	// Default 100; negative: all have one.
	Names int
}

func (o Options) withDefaults() Options {
	if o.Schedules == 0 {
		o.Schedules = 1000
	}
	if o.Names == 0 {
		o.Names = 100
	}
	return o
}

// Metrics keeps the metrics of one dispatcher. It is the observer in that dispatcher's onbeat.Config.
//
// It counts the work of this process as it happens. Each scrape reads the state that all instances share, such as the waiting tasks,
// from Redis. Without an answer of Redis these series are missing, so they are never out of date.
type Metrics struct {
	opts Options

	mu      sync.Mutex
	parts   []*part // bound by the dispatcher, one for each partition
	reading singleflight.Group

	runs     *prometheus.CounterVec
	duration *prometheus.HistogramVec
	lag      prometheus.Histogram
	wait     prometheus.Histogram
	claims   *prometheus.CounterVec
	workers  prometheus.Gauge
	busy     prometheus.Gauge
	types    *bounded

	changes    prometheus.Counter
	suspicions prometheus.Counter

	moved  *prometheus.CounterVec
	outbox prometheus.Gauge

	scripts  *prometheus.HistogramVec
	failures *prometheus.CounterVec
	doubts   prometheus.Counter
	told     *prometheus.CounterVec
	beats    *prometheus.CounterVec
	secrets  *prometheus.CounterVec
	targets  *bounded

	lost prometheus.Counter

	scrapeErrors atomic.Int64
	fates        atomic.Pointer[producer.Following] // the last that was read
}

var _ onbeat.Observer = (*Metrics)(nil)

// NewMetrics makes the metrics of one dispatcher and registers them. It returns the error of the registry, which refuses them if
// it has others with the same names: for several dispatchers in one process, wrap the registry with a label for each
// ([prometheus.WrapRegistererWith]).
func NewMetrics(reg prometheus.Registerer, opts Options) (*Metrics, error) {
	m := &Metrics{opts: opts.withDefaults()}
	m.types, m.targets = newBounded(m.opts.Names), newBounded(m.opts.Names)
	var errs []error
	for _, c := range m.make() {
		errs = append(errs, reg.Register(c))
	}
	return m, errors.Join(errs...)
}

// NewRegistry returns a registry with the metrics of one dispatcher, of the Go runtime and of the process: all that a program
// has whose only work is a dispatcher.
func NewRegistry(opts Options) (*prometheus.Registry, *Metrics, error) {
	reg := prometheus.NewRegistry()
	m, err := NewMetrics(reg, opts)
	if err == nil {
		err = errors.Join(reg.Register(collectors.NewGoCollector()), reg.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
	}
	return reg, m, err
}

// Handler serves the metrics of a registry, in the format that the client asks for. A metric that cannot be gathered does not hide
// the others.
func Handler(reg prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// make makes all metrics, and returns them to be registered.
func (m *Metrics) make() []prometheus.Collector {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m.runs = counters("onbeat_runs_total", "Runs that ended in this process, by type and outcome.", "type", "outcome")
	m.duration = prometheus.NewHistogramVec(histogram("onbeat_run_duration_seconds", "How long handlers ran in this process.", longBuckets), []string{"type"})
	m.lag = prometheus.NewHistogram(histogram("onbeat_slot_lag_seconds", "From a slot's time until its first run began in this process.", lagBuckets))
	m.wait = prometheus.NewHistogram(histogram("onbeat_task_wait_seconds", "From a task's due time until its run began in this process.", longBuckets))
	m.claims = counters("onbeat_claims_total", "Calls of this process that were to claim tasks, by result.", "result")
	m.workers = gauge("onbeat_workers", "How many tasks this process runs at once at most.")
	m.busy = gauge("onbeat_workers_busy", "Handlers that run in this process.")
	m.suspicions = counter("onbeat_suspicions_total", "Leaders without a sign of life that this instance, as the monitor, had replaced.")
	m.changes = counter("onbeat_leader_changes_total", "Terms that began since this process started, of any instance.")
	m.moved = counters("onbeat_outbox_moved_total", "Rows of the outbox that this process moved, by result.", "result")
	m.outbox = gauge("onbeat_outbox_waiting", "Rows of the outbox that wait, as this process last saw; of more than 10,000 it says 10,000.")
	m.scripts = prometheus.NewHistogramVec(histogram("onbeat_script_seconds", "How long this process waited for each call of a script.", scriptBuckets), []string{"script"})
	m.failures = counters("onbeat_redis_errors_total", "Calls of scripts by this process that failed, by kind.", "kind")
	m.doubts = counter("onbeat_primary_suspicions_total", "Times this process held claims back, because the primary of Redis had lost a replica.")
	m.lost = counter("onbeat_archive_lost_entries_total", "Entries that Redis dropped before this process could archive them.")
	m.told = counters("onbeat_notifications_total", "Attempts of this process to send a message to a target of notify, by result.", "target", "result")
	m.beats = counters("onbeat_heartbeats_total", "Attempts of this process to send a heartbeat, of the dispatcher or of a schedule, by result.", "of", "result")
	m.secrets = counters("onbeat_api_secret_errors_total", "Readings of a token's file, or of the certificates, of the API that failed.", "kind", "name")
	for _, kind := range errorKinds {
		m.failures.WithLabelValues(kind.name)
	}
	m.failures.WithLabelValues(otherError)
	for _, result := range []string{claimedSome, claimedNone, claimRefused, claimFailed} {
		m.claims.WithLabelValues(result)
	}
	for _, result := range notify.Results() {
		m.beats.WithLabelValues(notify.OfDispatcher, result)
		m.beats.WithLabelValues(notify.OfSchedules, result)
	}
	for _, result := range []string{outbox.Moved, outbox.Duplicate, outbox.Refused, outbox.Stuck} {
		m.moved.WithLabelValues(result)
	}
	return []prometheus.Collector{
		m.runs, m.duration, m.lag, m.wait, m.claims, m.workers, m.busy, m.changes, m.suspicions, m.scripts, m.failures,
		m.doubts, m.lost, m.told, m.beats, m.secrets, m.moved, m.outbox, &scrape{m},
	}
}

// The buckets of the classic histograms, for those who do not gather native ones.
var (
	lagBuckets    = []float64{.001, .002, .005, .01, .02, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	longBuckets   = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600}
	scriptBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
)

// histogram describes a native histogram with classic buckets beside it.
func histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	}
}

// moment is a local time that several goroutines use; zero: there was none.
type moment struct{ ns atomic.Int64 }

func (m *moment) now()   { m.ns.Store(time.Now().UnixNano()) }
func (m *moment) never() { m.ns.Store(0) }

// age returns how long ago the moment was.
func (m *moment) age() (time.Duration, bool) {
	ns := m.ns.Load()
	return max(time.Since(time.Unix(0, ns)), 0), ns != 0
}
