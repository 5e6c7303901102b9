package evaluate

// Experiment "calibration": how true the stated uncertainties are.

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/basetensor/basetensor/pkg/lab/chart"
)

func calibration() Experiment {
	return Experiment{
		Name:        "calibration",
		Description: "the error of ln Z against the stated uncertainty: 300 random models of five families, weak to strong, mixed and attractive",
		Run: func(ctx context.Context, o Options) ([]Row, error) {
			methods, err := Named("truncated-4", "truncated-8", "truncated-16", "regions")
			if err != nil {
				return nil, err
			}
			return compare(ctx, o, calibrationModels(o), methods, false)
		},
		Figures: calibrationFigures,
		Summary: calibrationSummary,
	}
}

// calibrationModels are five families at six strengths, of sizes that change with the seed; every second one is attractive.
func calibrationModels(o Options) []instance {
	kinds := []struct {
		family    family
		low, high int // sizes
	}{{grids, 12, 16}, {regular, 40, 90}, {complete, 14, 18}, {bipartite, 9, 11}, {random, 18, 34}}
	strengths := []float64{0.2, 0.5, 1, 1.5, 2, 3}
	var list []instance
	for _, k := range kinds {
		if o.Short {
			k.low, k.high, strengths = 2*k.low/3, 2*k.high/3, []float64{0.5, 2}
		}
		for _, s := range strengths {
			for seed := range o.seeds() {
				x := instance{family: k.family, size: k.low + (seed*7)%(k.high-k.low+1), strength: s, seed: uint64(seed)}
				x.attractive = seed%2 == 1 && k.family.name != random.name
				if x.family.name == regular.name {
					x.size += x.size % 2
				}
				list = append(list, x)
			}
		}
	}
	return list
}

// least is what an error is known to: below it, rounding is compared with rounding.
const least = 1e-10

// calibrated are the figures of one method, over the models with an estimate and a stated uncertainty.
type calibrated struct {
	models, failed, unstated int
	within                   int     // |error| ≤ 3 · stated + least
	ratio                    float64 // median stated / median |error|
	stated, err              float64 // medians
}

func calibrate(rows []Row, method string) (c calibrated) {
	var stated, errs []float64
	for _, r := range rows {
		if r.Method != method {
			continue
		}
		c.models++
		switch {
		case math.IsNaN(r.Estimate):
			c.failed++
		case math.IsNaN(r.Uncertainty):
			c.unstated++
		default:
			stated, errs = append(stated, r.Uncertainty), append(errs, r.Error)
			if r.Error <= 3*r.Uncertainty+least {
				c.within++
			}
		}
	}
	c.stated, c.err = chart.Summary(0, stated).Y, chart.Summary(0, errs).Y
	c.ratio = c.stated / c.err
	return c
}

func calibrationSummary(rows []Row) string {
	var b strings.Builder
	for _, method := range names(rows, func(r Row) string { return r.Method }) {
		c := calibrate(rows, method)
		known := c.models - c.failed - c.unstated
		fmt.Fprintf(&b, "%-24s %d models, %d failed, %d without uncertainty; within 3 × stated: %d of %d (%.1f %%); median stated %s, error %s, ratio %.3g\n",
			method, c.models, c.failed, c.unstated, c.within, known, 100*float64(c.within)/float64(max(known, 1)), short(c.stated), short(c.err), c.ratio)
	}
	return b.String()
}

func calibrationFigures(rows []Row) (list []Figure) {
	for _, method := range names(rows, func(r Row) string { return r.Method }) {
		s := chart.Scatter{Title: "Error against stated uncertainty: " + method, Diagonals: []float64{1, 3},
			X: chart.Axis{Label: "stated uncertainty of ln Z (nats)", Log: true, Floor: 1e-14}, Y: chart.Axis{Label: "|Δ ln Z| (nats)", Log: true, Floor: 1e-14}}
		for _, family := range names(rows, func(r Row) string { return r.Family }) {
			g := chart.Curve{Name: family}
			for _, r := range rows {
				if r.Family == family && r.Method == method {
					g.Points = append(g.Points, chart.Point{X: r.Uncertainty, Y: r.Error, Low: r.Error, High: r.Error})
				}
			}
			s.Groups = append(s.Groups, g)
		}
		list = append(list, Figure{Name: "calibration-" + method, Draw: s.WriteSVG})
	}
	return list
}
