// Package metrics counts the work of a process's workers, their caches and their streams, for Prometheus
// (docs/reference/metrics.md).
package metrics

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/jobs/cached"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Outcomes of a request for an immediate answer, as counted.
const (
	Answered = "answered"
	Pending  = "pending"
	Refused  = "refused"
)

// Actions of the sweeper, as counted.
const (
	SweptRedrive = "redrive" // a job was started again
	SweptSum     = "sum"     // a job's partials were summed
	SweptCarried = "carried" // a job that takes long was moved to the end of the streams
)

// Metrics counts the work of a process's stages. The counting methods of a nil *Metrics do nothing.
type Metrics struct {
	registry   *prometheus.Registry
	messages   *prometheus.CounterVec
	redelivery *prometheus.CounterVec
	outcomes   *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	conflicts  *prometheus.CounterVec
	swept      *prometheus.CounterVec
	requests   *prometheus.HistogramVec
	hung       *prometheus.CounterVec
	forged     *prometheus.CounterVec
	stalled    prometheus.Gauge
	stalls     prometheus.Counter
	caches     cacheMetrics
	rooms      roomMetrics
	loads      loadMetrics
	jobs       *jobMetrics
	usage      *usage

	mu     sync.Mutex
	ready  []func() error // checks of the running stages; under mu
	server func() string  // returns the version of nats-server; under mu
}

// New returns Metrics with a registry of its own, for a process that runs the given stages, or all four if none is
// given. Counters whose labels are known exist from the start, at 0: an alarm on a counter that appears with its first
// event would miss that event.
func New(stages ...string) *Metrics {
	m := &Metrics{
		registry:   prometheus.NewRegistry(),
		messages:   newCounter("messages_total", "Messages delivered.", "stage"),
		redelivery: newCounter("redeliveries_total", "Messages delivered again.", "stage"),
		outcomes: newCounter(
			"outcomes_total", "What became of messages: done, held, later, retry, failed, dead.",
			"stage", "outcome",
		),
		conflicts: newCounter(
			"conflicts_total", "Outputs that differ from an earlier one of the same work.", "stage",
		),
		hung: newCounter(
			"hung_total",
			"Handlers that were given up because they did not return after their context had ended.",
			"stage",
		),
		jobs:  newJobMetrics(),
		usage: newUsage(),
		forged: newCounter(
			"forged_total",
			"Messages of workers that no worker signed, or for another subject or time.", "kind",
		),
		swept:    newCounter("swept_total", "Stalled jobs that the sweeper took up.", "action"),
		seconds:  newTimes("message_seconds", "Time from delivery to acknowledgement.", "stage"),
		requests: newTimes("request_seconds", "Time of requests for an immediate answer: answered, pending, refused.", "outcome"),
		stalled: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "basetensor",
			Name:      "storage_stalled",
			Help:      "1 while the NATS server answers and stores nothing, else 0.",
		}),
		stalls: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "basetensor",
			Name:      "storage_stalled_total",
			Help:      "How often the NATS server was found to store nothing.",
		}),
	}
	if len(stages) == 0 {
		stages = stage.Names()
	}
	m.register(slices.ContainsFunc(stages, cached.UsesCache))
	m.startCounters(stages)
	for _, kind := range append(slices.Clone(message.Internals), message.KindServes) { // the kinds that workers sign
		m.forged.WithLabelValues(string(kind))
	}
	return m
}

// register registers the metrics, with those of the caches if withCaches.
func (m *Metrics) register(withCaches bool) {
	m.registry.MustRegister(
		m.stalled, m.stalls, m.messages, m.redelivery, m.outcomes, m.conflicts,
		m.swept, m.seconds, m.requests, m.hung, m.forged,
		&m.rooms, &m.loads, m, lostGoroutines(),
		telemetry.BuildInfo(),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.jobs.register(m.registry)
	m.usage.register(m.registry)
	if withCaches {
		m.registry.MustRegister(&m.caches)
	}
}

// newTimes returns histograms of seconds with a label, from half a millisecond to two minutes.
func newTimes(name, help, label string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "basetensor", Name: name, Help: help,
		Buckets: prometheus.ExponentialBuckets(0.0005, 4, 10), // the last one begins at 0.0005·4⁹ = 131 s
	}, []string{label})
}

// newCounter returns counters with labels.
func newCounter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(
		prometheus.CounterOpts{Namespace: "basetensor", Name: name, Help: help}, labels,
	)
}

// lostGoroutines returns a gauge of the handlers that were given up and have not returned.
func lostGoroutines() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "basetensor",
		Name:      "lost_goroutines",
		Help:      "Handlers that were given up and have not returned since.",
	}, func() float64 { return float64(hop.LostGoroutines()) })
}

// startCounters makes the counters of the stages, at 0.
func (m *Metrics) startCounters(stages []string) {
	for _, name := range stages {
		for _, c := range []*prometheus.CounterVec{m.messages, m.redelivery, m.conflicts, m.hung} {
			c.WithLabelValues(name)
		}

		for _, outcome := range hop.Outcomes() {
			m.outcomes.WithLabelValues(name, outcome)
		}
		m.seconds.WithLabelValues(name)
		m.jobs.startSeries(name)

		switch name {
		case query.StageReparam:
			for _, outcome := range []string{Answered, Pending, Refused} {
				m.requests.WithLabelValues(outcome)
			}
		case query.StageAggregate:
			for _, action := range []string{SweptRedrive, SweptSum, SweptCarried} {
				m.swept.WithLabelValues(action)
			}
		}
	}
}

// Registry returns the registry of the metrics.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Ready returns nil if the running stages can do their work, and otherwise an error that says why not.
func (m *Metrics) Ready() error {
	m.mu.Lock()
	ready := m.ready
	m.mu.Unlock()
	if len(ready) == 0 {
		return errors.New("pipeline: not running yet")
	}
	for _, isReady := range ready {
		if err := isReady(); err != nil {
			return err
		}
	}
	return nil
}

// Watch sets the checks that Ready makes.
func (m *Metrics) Watch(ready []func() error) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready = ready
}

// Server sets the function that returns the version of nats-server.
func (m *Metrics) Server(version func() string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server = version
}

// outdatedDesc describes the metric basetensor_nats_server_outdated.
var outdatedDesc = prometheus.NewDesc(
	"basetensor_nats_server_outdated", "1 if the version of nats-server may lose acknowledged messages at a power cut, else 0.",
	[]string{"version"}, nil,
)

// version returns the version of nats-server, or "" before it is known.
func (m *Metrics) version() string {
	m.mu.Lock()
	server := m.server
	m.mu.Unlock()
	if server == nil {
		return ""
	}
	return server()
}

// Outdated returns a sentence if this version of nats-server may lose acknowledged messages, and "" otherwise.
func (m *Metrics) Outdated() string {
	version := m.version()
	if _, keeps, known := bus.ServerVersion(version); keeps || !known {
		return ""
	}
	return "nats-server " + version + ": " + bus.NotDurable
}

// Describe implements prometheus.Collector, for the metric of the server alone.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) { to <- outdatedDesc }

// Collect implements prometheus.Collector, for the metric of the server alone.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	version := m.version()
	if version == "" {
		return
	}
	value := 0.0
	if m.Outdated() != "" {
		value = 1
	}
	to <- prometheus.MustNewConstMetric(outdatedDesc, prometheus.GaugeValue, value, version)
}

// Arrived counts a delivery to a stage.
func (m *Metrics) Arrived(stage string, attempt int) {
	if m == nil {
		return
	}
	m.messages.WithLabelValues(stage).Inc()
	if attempt > 1 {
		m.redelivery.WithLabelValues(stage).Inc()
	}
}

// Settled counts the outcome of a delivery.
func (m *Metrics) Settled(stage string, outcome string, took time.Duration) {
	if m == nil {
		return
	}
	m.outcomes.WithLabelValues(stage, outcome).Inc()
	m.seconds.WithLabelValues(stage).Observe(took.Seconds())
}

// Hang counts a handler that was given up.
func (m *Metrics) Hang(stage string) {
	if m != nil {
		m.hung.WithLabelValues(stage).Inc()
	}
}

// Forged counts a message of a kind that should be signed and is not.
func (m *Metrics) Forged(kind message.Kind) {
	if m != nil {
		m.forged.WithLabelValues(string(kind)).Inc()
	}
}

// Storage notes that the server has ceased to store messages, or stores them again.
func (m *Metrics) Storage(stalled bool) {
	switch {
	case m == nil:
	case stalled:
		m.stalled.Set(1)
		m.stalls.Inc()
	default:
		m.stalled.Set(0)
	}
}

// Conflict counts an output that differs from an earlier one of the same work.
func (m *Metrics) Conflict(stage string) {
	if m != nil {
		m.conflicts.WithLabelValues(stage).Inc()
	}
}

// Sweep counts an action of the sweeper.
func (m *Metrics) Sweep(action string) {
	if m != nil {
		m.swept.WithLabelValues(action).Inc()
	}
}

// Request counts a request for an immediate answer.
func (m *Metrics) Request(outcome string, took time.Duration) {
	if m != nil {
		m.requests.WithLabelValues(outcome).Observe(took.Seconds())
	}
}
