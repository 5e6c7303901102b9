package gateway

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/basetensor/basetensor/internal/base/shares"
)

// metrics count requests.
type metrics struct {
	seconds *prometheus.HistogramVec
}

// newMetrics returns the metrics of a gateway, registered unless registry is nil.
func newMetrics(registry prometheus.Registerer, g *Gateway) *metrics {
	m := &metrics{seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "basetensor",
		Name:      "http_request_seconds",
		Help:      "Time of requests over HTTP; of streams of events until they end. A code of 499 is a client that went away.",
		Buckets:   prometheus.ExponentialBuckets(0.0005, 4, 10), // from 0.5 ms to 131 s
	}, []string{"method", "route", "code"})}
	if registry == nil {
		return m
	}
	gauge := func(name, help string, room *shares.Room) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "basetensor", Name: name, Help: help,
		}, func() float64 { return float64(room.Used()) })
	}
	registry.MustRegister(m.seconds,
		gauge("http_requests", "Requests over HTTP under way.", &g.requests),
		gauge("http_streams", "Streams of events under way.", &g.streams))
	return m
}

// countRequest counts a request and its time.
func (m *metrics) countRequest(method, route string, code int, took time.Duration) {
	m.seconds.WithLabelValues(method, route, strconv.Itoa(code)).Observe(took.Seconds())
}
