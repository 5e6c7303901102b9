// Cactus plots: the number of solved models by the time of each.

package bench

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/basetensor/basetensor/lab/chart"
)

// Clock is which time of a model is drawn.
type Clock string

// The clocks.
const (
	Wall Clock = "wall time"
	CPU  Clock = "CPU time"
)

// Series is one curve: the sorted times of the models a set solved, in seconds.
type Series struct {
	Name  string
	Times []float64
	Total int // models tried
}

// SeriesOf groups rows by their set, in the order in which the sets appear. Rows without a set count
// to the one named otherwise.
func SeriesOf(rows []Row, otherwise string, clock Clock) []Series {
	var list []Series
	index := map[string]int{}
	for _, r := range rows {
		name := r.Set
		if name == "" {
			name = otherwise
		}
		i, ok := index[name]
		if !ok {
			i, index[name] = len(list), len(list)
			list = append(list, Series{Name: name})
		}
		if list[i].Total++; r.Status.Solved() {
			seconds := r.Wall
			if clock == CPU {
				seconds = r.CPU
			}
			list[i].Times = append(list[i].Times, seconds)
		}
	}

	for _, s := range list {
		slices.Sort(s.Times)
	}
	return list
}

// leastSeconds is where the time axis begins at the latest: a logarithm has no 0, and clocks no
// less.
const leastSeconds = 1e-3

// points are the corners of the curve as a staircase, from (from, 0) to (to, solved).
func (s Series) points(from, to float64) []chart.Point {
	at := func(x float64, solved int) chart.Point {
		return chart.Point{X: x, Y: float64(solved), Low: float64(solved), High: float64(solved)}
	}
	list := []chart.Point{at(from, 0)}
	for i, t := range s.Times {
		t = max(t, leastSeconds)
		list = append(list, at(t, i), at(t, i+1))
	}
	return append(list, at(to, len(s.Times)))
}

// label of the curve in the legend.
func (s Series) label() string {
	return fmt.Sprintf("%s: %d of %d solved", s.Name, len(s.Times), s.Total)
}

// WriteSVG draws the curves of the series: models solved within a time each, against that time on a
// logarithmic axis. The axis ends at limit seconds, or at the slowest solved model where there is no
// limit (0).
func WriteSVG(w io.Writer, title string, series []Series, clock Clock, limit float64) error {
	from, to := extent(series, limit)
	l := chart.Lines{
		Title: title, X: chart.Axis{Label: "seconds per model (" + string(clock) + ")", Log: true},
		Y: chart.Axis{Label: "models solved within this time"},
	}
	for _, s := range series {
		l.Curves = append(l.Curves, chart.Curve{Name: s.label(), Points: s.points(from, to), Plain: true})
	}
	return l.WriteSVG(w)
}

// extent is the range of the time axis, with some room left of the quickest solved model.
func extent(series []Series, limit float64) (from, to float64) {
	quickest, slowest := math.Inf(1), limit
	for _, s := range series {
		if n := len(s.Times); n > 0 {
			quickest, slowest = min(quickest, s.Times[0]), max(slowest, s.Times[n-1])
		}
	}
	if math.IsInf(quickest, 1) {
		quickest = 0.1
	}
	from = max(quickest, leastSeconds) * 0.7
	return from, max(slowest, 10*from)
}
