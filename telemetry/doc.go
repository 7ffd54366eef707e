// Package telemetry shows what a dispatcher does to the systems that watch programs. [NewMetrics] makes an observer that keeps
// metrics for Prometheus: give it to onbeat.Config, and serve [Handler] at /metrics. docs/metrics.md says what each metric means.
package telemetry
