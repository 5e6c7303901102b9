package metrics

// Durations of jobs and their messages, and the quality stated in answers.

import (
	"sync"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/prometheus/client_golang/prometheus"
)

// Kinds of results, as counted.
const (
	resultExact    = "exact"    // said to be exact
	resultStated   = "stated"   // with a stated uncertainty
	resultUnstated = "unstated" // approximate, and nothing is known of its error
	resultFailed   = "failed"   // without a number
)

// jobMetrics counts jobs, their messages and their results.
type jobMetrics struct {
	job         *prometheus.HistogramVec
	wait, work  *prometheus.HistogramVec
	uncertainty prometheus.Histogram
	results     *prometheus.CounterVec
	flops       *prometheus.CounterVec
	busy        *prometheus.CounterVec

	mu      sync.Mutex
	classOf func(tenant string) string // returns a tenant's class; nil: all have the default class; under mu
}

// newJobMetrics returns the metrics with nothing counted.
func newJobMetrics() *jobMetrics {
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "basetensor", Name: name, Help: help, Buckets: buckets,
		}, labels)
	}
	seconds := prometheus.ExponentialBuckets(0.0005, 4, 10) // from 0.5 ms to 131 s
	return &jobMetrics{
		job: histogram(
			"job_seconds", "Time from when a job's model was stored until its answer was.",
			prometheus.ExponentialBuckets(0.002, 3, 12), // from 2 ms to 354 s
			"method", "outcome", "class",
		),
		wait: histogram("wait_seconds", "Time that messages waited in their stream.", seconds, "stage"),
		work: histogram(
			"work_seconds", "Time from a message's delivery until its output was stored.", seconds, "stage",
		),
		uncertainty: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "basetensor", Name: "stated_uncertainty",
			Help:    "Stated uncertainties of ln Z in nats, of results that are not exact.",
			Buckets: prometheus.ExponentialBuckets(1e-10, 10, 12), // from 1e-10 to 10 nats
		}),
		results: newCounter(
			"results_total", "Results of queries: exact, stated (uncertainty), unstated, failed.", "kind",
		),
		flops: newCounter(
			"flops_total", "Flops of the tasks that were contracted, as they were expected.", "stage",
		),
		busy: newCounter(
			"busy_seconds_total", "Time in which any message of the stage was in work.", "stage",
		),
	}
}

// register adds the metrics to a registry.
func (j *jobMetrics) register(registry *prometheus.Registry) {
	registry.MustRegister(j.job, j.wait, j.work, j.uncertainty, j.results, j.flops, j.busy)
}

// startSeries makes the series of a stage whose labels are known beforehand, so that they are shown as 0 before the first
// event. Only messages to the stage streams.Priced state the flops that they take.
func (j *jobMetrics) startSeries(stage string) {
	j.wait.WithLabelValues(stage)
	j.work.WithLabelValues(stage)
	j.busy.WithLabelValues(stage)
	if stage == streams.Priced {
		j.flops.WithLabelValues(stage)
	}
	if stage != query.StageAggregate {
		return
	}
	for _, code := range []fault.Code{
		fault.BadInput, fault.Unsupported, fault.OverBudget, fault.Deadline, fault.Cancelled,
		fault.FailedEstimate, fault.Damaged, fault.Infrastructure, fault.Internal,
	} {
		j.job.WithLabelValues(hop.MethodNone, string(code), admission.DefaultClass)
	}
	for _, kind := range []string{resultExact, resultStated, resultUnstated, resultFailed} {
		j.results.WithLabelValues(kind)
	}
	for _, method := range []query.Method{
		query.MethodExact, query.MethodSymmetryCP, query.MethodTruncated, query.MethodRegions, query.MethodSampled,
	} {
		j.job.WithLabelValues(string(method), hop.OutcomeOK, admission.DefaultClass)
	}
}

// observe adds a value to a histogram. If trace is not "", the value is an example (an exemplar) with the trace's id.
func observe(h prometheus.Observer, value float64, trace string) {
	if exemplars, hasExemplars := h.(prometheus.ExemplarObserver); hasExemplars && trace != "" {
		exemplars.ObserveWithExemplar(value, prometheus.Labels{"trace_id": trace})
		return
	}
	h.Observe(value)
}

// Classes sets the function that returns a tenant's class, which is a label of durations of jobs. There are few
// classes.
func (m *Metrics) Classes(class func(tenant string) string) {
	if m == nil {
		return
	}
	m.jobs.mu.Lock()
	defer m.jobs.mu.Unlock()
	m.jobs.classOf = class
}

// Worked counts the work on one message of a stage.
func (m *Metrics) Worked(stage string, w hop.Work) {
	if m == nil {
		return
	}
	switch stage {
	case streams.Priced:
		m.jobs.flops.WithLabelValues(stage).Add(w.Flops)
		m.usage.flops.WithLabelValues(m.usage.label(w.Tenant)).Add(w.Flops)
	case query.StageReparam:
		m.usage.bytes.WithLabelValues(m.usage.label(w.Tenant)).Add(float64(w.Bytes))
	}
	m.jobs.busy.WithLabelValues(stage).Add(w.Charged)
	observe(m.jobs.work.WithLabelValues(stage), w.Duration.Seconds(), w.Trace)
	if w.IsFirstDelivery {
		observe(m.jobs.wait.WithLabelValues(stage), w.Waited.Seconds(), w.Trace)
	}
}

// Answered counts a job whose answer was stored, and its results.
func (m *Metrics) Answered(e hop.Ended) {
	if m == nil {
		return
	}
	m.jobs.mu.Lock()
	classOf := m.jobs.classOf
	m.jobs.mu.Unlock()
	class := admission.DefaultClass
	if classOf != nil {
		class = classOf(e.Tenant)
	}
	if e.HasDuration {
		observe(m.jobs.job.WithLabelValues(e.Method, e.Outcome, class), e.Duration.Seconds(), e.Trace)
	}
	tenant := m.usage.label(e.Tenant)
	m.usage.jobs.WithLabelValues(tenant).Inc()
	m.usage.bytes.WithLabelValues(tenant).Add(float64(e.Bytes))
	for i := range e.Results {
		m.jobs.countResult(&e.Results[i], e.Trace)
	}
}

// countResult counts one result, and its uncertainty if it states one.
func (j *jobMetrics) countResult(r *query.Result, trace string) {
	kind := resultUnstated
	switch {
	case r.Status != query.StatusOK:
		kind = resultFailed
	case r.Exact:
		kind = resultExact
	case r.Uncertainty != nil:
		kind = resultStated
		observe(j.uncertainty, *r.Uncertainty, trace)
	}
	j.results.WithLabelValues(kind).Inc()
}
