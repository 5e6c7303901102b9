package scale

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/basetensor/basetensor/lab/chart"
)

var nan = math.NaN()

var columns = []string{"seconds", "backlog_seconds", "wanted", "running"}

// WriteCSV writes the samples.
func WriteCSV(w io.Writer, samples []Sample) error {
	rows := make([][]any, len(samples))
	for i, s := range samples {
		rows[i] = []any{math.Round(10*s.Seconds) / 10, math.Round(1000*s.Backlog) / 1000, s.Wanted, s.Running}
	}
	return chart.WriteCSV(w, columns, rows)
}

// ReadCSV reads what WriteCSV wrote.
func ReadCSV(r io.Reader) (samples []Sample, err error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("scale: %w", err)
	}
	for i, row := range rows {
		if i == 0 {
			continue
		}
		var x [4]float64
		for k := range x {
			if x[k], err = strconv.ParseFloat(row[k], 64); err != nil && row[k] != "" {
				return nil, fmt.Errorf("scale: line %d: %w", i+1, err)
			} else if row[k] == "" {
				x[k] = nan
			}
		}
		samples = append(samples, Sample{x[0], x[1], int(x[2]), int(x[3])})
	}
	return samples, nil
}

// WriteSVG draws the replicas, and how many the backlog alone would ask for: by the target, before every bound.
func WriteSVG(w io.Writer, p Policy, samples []Sample) error {
	asked, running := chart.Curve{Name: fmt.Sprintf("backlog in %g s of work", p.Target)}, chart.Curve{Name: p.Name + "s"}
	at := func(x, y float64) chart.Point { return chart.Point{X: x, Y: y, Low: y, High: y} }
	for i, s := range samples {
		asked.Points = append(asked.Points, at(s.Seconds, s.Backlog/p.Target))
		last := i == len(samples)-1
		if i > 0 && (last || samples[i-1].Running != s.Running) {
			running.Points = append(running.Points, at(s.Seconds, float64(samples[i-1].Running)))
		}
		if i == 0 || last || samples[i-1].Running != s.Running {
			running.Points = append(running.Points, at(s.Seconds, float64(s.Running)))
		}
	}
	return chart.Lines{
		Title: "Processes by the backlog, as a cluster's autoscaler starts and ends them", X: chart.Axis{Label: "time (s)"},
		Y: chart.Axis{Label: "number"}, Curves: []chart.Curve{asked, running},
	}.WriteSVG(w)
}
