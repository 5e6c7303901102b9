package metrics

// The room of the streams in metrics and in a line of /readyz.

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/prometheus/client_golang/prometheus"
)

// roomMetrics has the rooms of the streams that an aggregator measured last.
type roomMetrics struct {
	mu     sync.Mutex
	rooms  map[string]streams.Room // by stream
	oldest time.Duration           // age of the oldest job without answer
}

var (
	roomSeconds = prometheus.NewDesc(
		"basetensor_room_seconds",
		"Seconds until clients are refused if nothing more could go and jobs came at the present rate.",
		[]string{"stream"}, nil,
	)
	roomBytes = prometheus.NewDesc(
		"basetensor_room_bytes",
		"Bytes of a stream: used, held (of these, what cannot go yet) and limit.",
		[]string{"stream", "what"}, nil,
	)
	oldestJob = prometheus.NewDesc(
		"basetensor_oldest_job_seconds", "Age of the oldest job that has no answer; 0: there is none.",
		nil, nil,
	)
)

// Describe implements prometheus.Collector.
func (m *roomMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- roomSeconds
	to <- roomBytes
	to <- oldestJob
}

// Collect implements prometheus.Collector.
func (m *roomMetrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rooms != nil {
		to <- prometheus.MustNewConstMetric(oldestJob, prometheus.GaugeValue, m.oldest.Seconds())
	}
	for name, r := range m.rooms {
		to <- prometheus.MustNewConstMetric(roomSeconds, prometheus.GaugeValue, r.Seconds, name)
		for what, bytes := range map[string]float64{"used": r.Used, "held": r.Held, "limit": r.Limit} {
			to <- prometheus.MustNewConstMetric(roomBytes, prometheus.GaugeValue, bytes, name, what)
		}
	}
}

// Rooms sets, for the metrics, how much room the streams have, by name, and the age of the oldest job without answer.
func (m *Metrics) Rooms(rooms map[string]streams.Room, oldest time.Duration) {
	if m == nil {
		return
	}
	m.rooms.mu.Lock()
	defer m.rooms.mu.Unlock()
	m.rooms.rooms = rooms
	m.rooms.oldest = oldest
}

// Room returns a line that says for how long the streams have room at the present rate, or "" if no aggregator of this
// process has measured it.
func (m *Metrics) Room() string {
	m.rooms.mu.Lock()
	defer m.rooms.mu.Unlock()
	if len(m.rooms.rooms) == 0 {
		return ""
	}

	lowest := math.Inf(1)
	firstToFill := ""
	for name, r := range m.rooms.rooms {
		if r.Seconds < lowest || r.Seconds == lowest && name < firstToFill {
			lowest = r.Seconds
			firstToFill = name
		}
	}
	if math.IsInf(lowest, 1) {
		return "room: no jobs come"
	}
	return fmt.Sprintf(
		"room: %.0f s at the present rate if nothing were answered (%s)", lowest, firstToFill,
	)
}
