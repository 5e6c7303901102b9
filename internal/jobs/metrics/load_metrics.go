package metrics

// The backlog of the stages and the fill of the streams, as an aggregator saw them last.

import (
	"sync"

	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/prometheus/client_golang/prometheus"
)

// loadMetrics has the loads and fills that an aggregator measured last.
type loadMetrics struct {
	mu    sync.Mutex
	loads map[string]streams.Load
	fills map[string]streams.Fill
}

// describeBacklog returns the description of a gauge of a stage's backlog.
func describeBacklog(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("basetensor_backlog_"+name, help, []string{"stage"}, nil)
}

var (
	backlogMessages = describeBacklog("messages", "Messages that wait before a stage or are in work there.")
	backlogFlops    = describeBacklog("flops", "Expected flops of the tasks that wait or are in work.")
	backlogSeconds  = describeBacklog(
		"seconds", "Seconds in which one worker of the stage would do what waits, at what workers measured last.",
	)
	backlogUnread = describeBacklog(
		"unread_messages", "Tasks of the backlog whose cost was not read yet: they are taken for average ones.",
	)
	fillRatio = prometheus.NewDesc(
		"basetensor_stream_fill_ratio", "Bytes of a stream by its limit.", []string{"stream"}, nil,
	)
)

// Describe implements prometheus.Collector.
func (m *loadMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{backlogMessages, backlogFlops, backlogSeconds, backlogUnread, fillRatio} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *loadMetrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gauge := func(d *prometheus.Desc, x float64, label string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, x, label)
	}
	for stage, l := range m.loads {
		gauge(backlogMessages, l.Messages, stage)
		gauge(backlogSeconds, l.Seconds, stage)
		if stage == streams.Priced {
			gauge(backlogFlops, l.Flops, stage)
			gauge(backlogUnread, l.Unread, stage)
		}
	}
	for stream, f := range m.fills {
		gauge(fillRatio, f.Used/f.Limit, stream)
	}
}

// Backlog sets the backlog of the stages.
func (m *Metrics) Backlog(loads map[string]streams.Load) {
	if m == nil {
		return
	}
	m.loads.mu.Lock()
	defer m.loads.mu.Unlock()
	m.loads.loads = loads
}

// Fills sets how full the streams are.
func (m *Metrics) Fills(fills map[string]streams.Fill) {
	if m == nil {
		return
	}
	m.loads.mu.Lock()
	defer m.loads.mu.Unlock()
	m.loads.fills = fills
}
