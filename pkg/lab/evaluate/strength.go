package evaluate

// Experiment "strength": errors against the strength of the couplings.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/pkg/lab/chart"
)

func strength() Experiment {
	return Experiment{
		Name:        "strength",
		Description: "|Δ ln Z| and the error of the marginals against the strength of the couplings, mixed signs, on four families of graphs",
		Run: func(ctx context.Context, o Options) ([]Row, error) {
			methods, err := Named("mean-field", "bp", "bucket-renormalisation", "symmetry-cp", "truncated-4", "truncated-8")
			if err != nil {
				return nil, err
			}
			return compare(ctx, o, strengthModels(o), methods, true)
		},
		Figures: strengthFigures,
		Summary: strengthSummary,
	}
}

func strengthModels(o Options) []instance {
	sizes := []instance{{family: grids, size: 15}, {family: complete, size: 15}, {family: regular, size: 100}, {family: random, size: 30}}
	deltas := []float64{0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3}
	if o.Short {
		sizes = []instance{{family: grids, size: 6}, {family: complete, size: 10}, {family: regular, size: 24}, {family: random, size: 14}}
		deltas = []float64{0.5, 2}
	}
	var list []instance
	for _, x := range sizes {
		for _, x.strength = range deltas {
			for seed := range o.seeds() {
				x.seed = uint64(seed)
				list = append(list, x)
			}
		}
	}
	return list
}

// names lists the distinct values of a field in the sequence in which they appear.
func names(rows []Row, field func(Row) string) (list []string) {
	for _, r := range rows {
		if n := field(r); !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// curves draws one value against the strength: the median over the seeds, with the quartiles. Methods without it are left out.
func curves(rows []Row, family string, value func(Row) float64) (list []chart.Curve) {
	for _, method := range names(rows, func(r Row) string { return r.Method }) {
		var strengths []float64
		at := map[float64][]float64{}
		for _, r := range rows {
			if r.Family == family && r.Method == method && !math.IsNaN(value(r)) {
				if !slices.Contains(strengths, r.Strength) {
					strengths = append(strengths, r.Strength)
				}
				at[r.Strength] = append(at[r.Strength], value(r))
			}
		}
		slices.Sort(strengths)
		c := chart.Curve{Name: method}
		for _, s := range strengths {
			c.Points = append(c.Points, chart.Summary(s, at[s]))
		}
		if len(c.Points) > 0 {
			list = append(list, c)
		}
	}
	return list
}

func strengthFigures(rows []Row) (list []Figure) {
	for _, family := range names(rows, func(r Row) string { return r.Family }) {
		for _, what := range []struct {
			file, label string
			value       func(Row) float64
		}{
			{"lnz", "|Δ ln Z| (nats), median and quartiles", func(r Row) float64 { return r.Error }},
			{"marginals", "mean total variation of marginals", func(r Row) float64 { return r.MarginalError }},
		} {
			l := chart.Lines{Title: "Error against strength: " + family, X: chart.Axis{Label: "strength Δ (nats)"},
				Y: chart.Axis{Label: what.label, Log: true}, Curves: curves(rows, family, what.value)}
			list = append(list, Figure{Name: "strength-" + family + "-" + what.file, Draw: l.WriteSVG})
		}
	}
	return list
}

// strengthSummary is a table per family: the median |Δ ln Z| of every method at every strength.
func strengthSummary(rows []Row) string {
	var b strings.Builder
	for _, family := range names(rows, func(r Row) string { return r.Family }) {
		fmt.Fprintf(&b, "%s: median |Δ ln Z| (nats)\n", family)
		for _, c := range curves(rows, family, func(r Row) float64 { return r.Error }) {
			fmt.Fprintf(&b, "  %-24s", c.Name)
			for _, p := range c.Points {
				fmt.Fprintf(&b, "  Δ=%g: %s", p.X, short(p.Y))
			}
			fmt.Fprintln(&b)
		}
	}
	return b.String()
}
