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
			methods, err := Named("tight-4", "tight-8")
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
	}{{grids, 14, 18}, {regular, 90, 130}, {complete, 18, 21}, {bipartite, 14, 16}, {random, 40, 64}}
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

// settled is what an error and a stated uncertainty are known to, in nats: models where both are below it were answered to
// rounding, and are counted apart.
const settled = 1e-9

// calibrated are the figures of one method.
type calibrated struct {
	models, failed, unstated, settled int
	within                            int     // of the others: |error| ≤ 3 · stated
	stated, err                       float64 // medians of the others, nats
}

// others is the number of models with an error and a stated uncertainty worth comparing.
func (c calibrated) others() int { return c.models - c.failed - c.unstated - c.settled }

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

func calibrationSummary(rows []Row) string {
	var b strings.Builder
	for _, method := range names(rows, func(r Row) string { return r.Method }) {
		c := calibrate(rows, method)
		fmt.Fprintf(&b, "%s: %d models, %d failed, %d without uncertainty, %d to rounding; of the other %d within 3 × stated %d (%.1f %%), median stated %s, median error %s, ratio %.3g\n",
			method, c.models, c.failed, c.unstated, c.settled, c.others(), c.within, 100*float64(c.within)/float64(c.others()), short(c.stated), short(c.err), c.stated/c.err)
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
