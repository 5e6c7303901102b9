package evaluate

// Experiment "strength": errors against the strength of the couplings.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/lab/chart"
)

func strength() Experiment {
	return Experiment{
		Name: "strength",
		Description: "|Δ ln Z| and the error of the marginals against the strength of the couplings, on " +
			"four families of graphs and on attractive grids",
		Run: func(ctx context.Context, o Options) ([]Row, error) {
			methods := only("bp", "symmetry-cp", "few-regions", "tight-4", "tight-8", "tree-8", "tree-16")
			return compare(ctx, o, strengthModels(o), methods, true)
		},
		Figures: strengthFigures,
		Summary: strengthSummary,
		Tables:  strengthTables,
	}
}

func strengthModels(o Options) []instance {
	sizes := []instance{
		{family: grids, size: 15},
		{family: complete, size: 15},
		{family: regular, size: 100},
		{family: random, size: 30},
	}
	deltas := []float64{0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3}
	if o.Short {
		sizes = []instance{
			{family: grids, size: 6},
			{family: complete, size: 10},
			{family: regular, size: 24},
			{family: random, size: 14},
		}
		deltas = []float64{0.5, 2}
	}

	sizes = append(sizes, sizes[0])
	sizes[len(sizes)-1].attractive = true
	var list []instance
	for _, x := range sizes {
		for _, x.strength = range deltas {
			for seed := range o.seeds(usualSeeds, shortSeeds) {
				x.seed = uint64(seed)
				list = append(list, x)
			}
		}
	}

	return list
}

func strengthFigures(rows []Row) []Figure {
	x := chart.Axis{Label: "strength Δ (nats)"}
	y := chart.Axis{Label: "|Δ ln Z| (nats), median and quartiles", Log: true, Floor: 1e-15}
	z := chart.Axis{Label: "mean total variation of marginals", Log: true, Floor: 1e-15}
	return drawn(rows, Row.label, func(g group) []string { return []string{"strength", g.name} },
		lines{"Error against strength", "lnz", x, y, ofStrength, ofError},
		lines{"Error against strength", "marginals", x, z, ofStrength, ofMarginalError})
}

// strengthSummary is a table per family: the median error of every method at every strength.
func strengthSummary(rows []Row) string {
	return medians(rows, Row.label, "Δ", ofStrength,
		named{"median |Δ ln Z| (nats)", ofError}, named{"median of the marginals' mean total variation", ofMarginalError})
}

// strengthTables are of some strengths: weak, moderate, strong.
func strengthTables(rows []Row) []Table {
	var some []Row
	for _, r := range rows {
		if r.Strength == 0.5 || r.Strength == 1 || r.Strength == 3 {
			some = append(some, r)
		}
	}
	by := func(r Row) string { return fmt.Sprintf("%s, Δ = %g", r.label(), r.Strength) }
	return []Table{{"lnz", pivot("median \\|Δ ln Z\\|", some, by, methodOf, ofError)}}
}
