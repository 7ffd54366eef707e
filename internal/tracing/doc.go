// Package tracing makes the OpenTelemetry spans of tasks, and carries their trace context through Redis. A task that a caller
// enqueues, its wait and its runs are one trace. Each run of a slot is a trace of its own, with a link to the push of the slot.
//
// The package needs only the API of OpenTelemetry. The program that uses onbeat brings the SDK, an exporter and the sampler.
package tracing
