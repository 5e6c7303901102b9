package evaluate

// Experiments "calibration", "-of-more" and "-of-constraints": how true the stated uncertainties are.

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/lab/chart"
)

// settled is the precision of errors and stated uncertainties, in nats: models where both are below it were answered to
// rounding, and are counted apart.
const settled = 1e-9

// calibrated are the figures of one method, or of several.
type calibrated struct {
	models, failed, unstated, settled int
	impossible                        int     // Z = 0, which no estimate can show: not among the models
	answered                          int     // of those
	within                            int     // of the others: |error| ≤ 3 · stated
	stated, err                       float64 // medians of the others, nats
}

// others is the number of models with an error and a stated uncertainty worth comparing.
func (c calibrated) others() int { return c.models - c.failed - c.unstated - c.settled }

// calibrate counts the rows of a method; "": of all.
func calibrate(rows []Row, method string) (c calibrated) {
	var stated, errs []float64
	for _, r := range rows {
		if method != "" && r.Method != method {
			continue
		}
		if math.IsInf(r.LnZ, -1) {
			c.impossible++
			if !math.IsNaN(r.Estimate) {
				c.answered++
			}
			continue
		}

		c.models++
		switch {
		case math.IsNaN(r.Estimate):
			c.failed++
		case math.IsNaN(r.Uncertainty):
			c.unstated++
		case r.Error <= settled && r.Uncertainty <= settled:
			c.settled++
		default:
			stated, errs = append(stated, r.Uncertainty), append(errs, r.Error)
			if r.Error <= 3*r.Uncertainty {
				c.within++
			}
		}
	}

	c.stated, c.err = chart.Summary(0, stated).Y, chart.Summary(0, errs).Y
	return c
}

// String says it in a line.
func (c calibrated) String() string {
	s := fmt.Sprintf("%d models, %d failed, %d without uncertainty, %d to rounding",
		c.models, c.failed, c.unstated, c.settled)
	if c.impossible > 0 {
		s = fmt.Sprintf("%d of Z = 0, %d answered; %s", c.impossible, c.answered, s)
	}
	if c.others() == 0 {
		return s
	}
	return s + fmt.Sprintf("; of the other %d within 3 × stated %d (%.1f %%), median stated %s, median "+
		"error %s, ratio %.3g",
		c.others(), c.within, 100*float64(c.within)/float64(c.others()), short(c.stated), short(c.err),
		c.stated/c.err)
}

// calibrationSummary is a line per method, a line per family of it, and the models whose error is
// more than was stated.
func calibrationSummary(rows []Row) string {
	var b strings.Builder
	for _, m := range groups(rows, methodOf) {
		fmt.Fprintf(&b, "%s: %s\n", m.name, calibrate(m.rows, m.name))
		for _, g := range groups(m.rows, Row.label) {
			fmt.Fprintf(&b, "  %s: %s\n", g.name, calibrate(g.rows, m.name))
		}
		writeOutside(&b, m.rows)
	}
	return b.String()
}

// writeOutside names the models whose error is more than three times the stated one.
func writeOutside(b *strings.Builder, rows []Row) {
	for _, r := range rows {
		if r.Error > settled && r.Error > 3*r.Uncertainty && !math.IsInf(r.LnZ, -1) {
			fmt.Fprintf(b, "  outside: %s, %d variables, Δ=%g, seed %d, %s: error %s, stated %s\n",
				r.label(), r.Variables, r.Strength, r.Seed, r.Method, short(r.Error), short(r.Uncertainty))
		}
	}
}

// calibrationFigures are a scatter per method.
func calibrationFigures(rows []Row) (list []Figure) {
	for _, m := range groups(rows, methodOf) {
		s := calibrationScatter("Error against stated uncertainty: "+m.name, groups(m.rows, familyOf))
		list = append(list, Figure{Name: "calibration-" + m.name, Draw: s.WriteSVG})
	}
	return list
}

// calibrationScatter draws the errors of groups against the stated ones.
func calibrationScatter(title string, list []group) chart.Scatter {
	s := chart.Scatter{
		Title: title, Diagonals: []float64{1, 3},
		X: chart.Axis{Label: "stated uncertainty of ln Z (nats)", Log: true, Floor: 1e-14},
		Y: chart.Axis{Label: "|Δ ln Z| (nats)", Log: true, Floor: 1e-14},
	}
	for _, g := range list {
		c := chart.Curve{Name: g.name}
		for _, r := range g.rows {
			c.Points = append(c.Points, chart.Point{X: r.Uncertainty, Y: r.Error, Low: r.Error, High: r.Error})
		}
		s.Groups = append(s.Groups, c)
	}
	return s
}

// constraintSummary is a line per family, a line per method of it, and the models whose error is
// more than was stated.
func constraintSummary(rows []Row) string {
	var b strings.Builder
	for _, g := range groups(rows, Row.label) {
		fmt.Fprintf(&b, "%s: %s\n", g.name, calibrate(g.rows, ""))
		for _, m := range groups(g.rows, methodOf) {
			fmt.Fprintf(&b, "  %s: %s\n", m.name, calibrate(m.rows, m.name))
		}
		writeOutside(&b, g.rows)
	}
	fmt.Fprintf(&b, "all: %s\n", calibrate(rows, ""))
	return b.String()
}

// constraintFigures are one scatter, a colour per family.
func constraintFigures(rows []Row) []Figure {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return math.IsInf(r.Error, 0) })
	s := calibrationScatter("Error against stated uncertainty: constraints", groups(rows, Row.label))
	return []Figure{{Name: "calibration-of-constraints", Draw: s.WriteSVG}}
}
