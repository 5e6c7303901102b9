package load

// The pictures of a report.

import (
	"io"
	"math"

	"github.com/basetensor/basetensor/lab/chart"
)

// latencyAxis begins at 0.01 ms at the latest.
var latencyAxis = chart.Axis{Label: "ms", Log: true, Floor: 0.01}

// series is a number of every second, by its name; without a number a second has no point.
type series struct {
	name string
	of   func(Second) float64
}

// drawThroughput draws the jobs offered, answered and refused in every second.
func (r *Report) drawThroughput(w io.Writer) error {
	return r.drawSeconds(w, "jobs per second", chart.Axis{Label: "jobs/s"},
		series{"offered", func(s Second) float64 { return float64(s.Offered) }},
		series{"answered", func(s Second) float64 { return float64(s.Answered) }},
		series{"refused", func(s Second) float64 { return float64(s.Refused) }})
}

// drawTimeline draws the latencies of the jobs of every second.
func (r *Report) drawTimeline(w io.Writer) error {
	some := func(ms float64) float64 {
		if ms > 0 {
			return ms
		}
		return math.NaN()
	}
	return r.drawSeconds(w, "latency by intended arrival", latencyAxis,
		series{"p50", func(s Second) float64 { return some(s.P50) }}, series{"p99", func(s Second) float64 { return some(s.P99) }})
}

func (r *Report) drawSeconds(w io.Writer, title string, y chart.Axis, list ...series) error {
	l := chart.Lines{Title: title, X: chart.Axis{Label: "seconds"}, Y: y}
	for _, s := range list {
		c := chart.Curve{Name: s.name, Plain: true}
		for t, second := range r.Timeline {
			v := s.of(second)
			c.Points = append(c.Points, chart.Point{X: float64(t) + 0.5, Y: v, Low: v, High: v})
		}
		l.Curves = append(l.Curves, c)
	}
	return l.WriteSVG(w)
}

// drawLatencies draws latency against the share of jobs that take longer: p90, p99, p99.9 at equal
// distances.
func (r *Report) drawLatencies(w io.Writer) error {
	c := chart.Curve{Name: "arrival to answer", Plain: true}
	n := len(r.latencies)
	for i, v := range r.latencies {
		if n < 2000 || i%(n/1000) == 0 || i > n-100 {
			c.Points = append(c.Points, chart.Point{X: -math.Log10(1 - (float64(i)+0.5)/float64(n)), Y: v, Low: v, High: v})
		}
	}
	x := chart.Axis{Label: "−log10(share of jobs that take longer): 1 is p90, 2 is p99"}
	return chart.Lines{Title: "latency quantiles", X: x, Y: latencyAxis, Curves: []chart.Curve{c}}.WriteSVG(w)
}
