package evaluate

// Experiment "calibration-of-constraints": how true the stated uncertainties are where combinations
// are forbidden or frustrated.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// The families of constraints. Δ is the noise of a parity code's channel, the edges per vertex of a
// graph that takes three colours, the share of a table that is forbidden, and the coupling ±J of a
// periodic grid.
var (
	parities = family{"parity", func(size int, o generate.Ising) (*factorgraph.Model, error) {
		return modeltest.Parity(size, o.Delta, o.Seed)
	}}
	colourings = family{"colouring", func(size int, o generate.Ising) (*factorgraph.Model, error) {
		return modeltest.Colouring(size, int(o.Delta*float64(size)), 3, o.Seed), nil
	}}
	satisfactions = family{"constraints", func(size int, o generate.Ising) (*factorgraph.Model, error) {
		return generate.Constraints(generate.ConstraintOptions{
			Variables: size, Constraints: 3 * size / 2, Forbidden: o.Delta, Strength: 1, Seed: o.Seed,
		})
	}}
	frustrated = family{"frustrated", func(size int, o generate.Ising) (*factorgraph.Model, error) {
		return modeltest.Frustrated(size, size, o.Delta, o.Seed), nil
	}}
)

// bonds are truncated legs of bonds 2 to 16 within so many bytes.
func bonds(bytes int64) (methods []Method) {
	for _, bond := range []int{2, 4, 8, 16} {
		s := query.Settings{Method: query.MethodTruncated, Bond: bond, Budget: 2e9, Memory: bytes}
		methods = append(methods, Settings(fmt.Sprintf("bond-%d", bond), s))
	}
	return methods
}

func calibrationOfConstraints() Experiment {
	return Experiment{
		Name: "calibration-of-constraints",
		Description: "calibration on hard constraints and frustrated grids: parity codes, colourings, " +
			"weighted constraints, ±J grids; attractive grids by regions",
		Run: func(ctx context.Context, o Options) (rows []Row, err error) {
			for _, part := range []struct {
				families []constrained
				methods  []Method
			}{
				{constrainedFamilies[:1], bonds(2 << 20)}, // checks of six bits need room for a sweep of bond 16
				{constrainedFamilies[1:4], bonds(256 << 10)},
				{constrainedFamilies[4:], only("few-regions")},
			} {
				more, err := compare(ctx, o, constraintModels(o, part.families), part.methods, false)
				if rows = append(rows, more...); err != nil {
					return rows, err
				}
			}
			return rows, nil
		},
		Figures: constraintFigures,
		Summary: constraintSummary,
		Tables:  constraintTables,
	}
}

// constrained is a family with its strengths; sizes go in steps from low, three of them.
type constrained struct {
	family    family
	strengths []float64
	low, step int
}

var constrainedFamilies = []constrained{
	{parities, []float64{0.03, 0.08}, 36, 6},
	{colourings, []float64{1.8, 2.1}, 30, 4},
	{satisfactions, []float64{0.13, 0.3}, 30, 4},
	{frustrated, []float64{0.7, 1.5}, 8, 1},
	{grids, []float64{0.5, 1, 2}, 10, 2}, // attractive
}

// constraintModels draws the models of the families at all strengths, of sizes that change with the seed.
func constraintModels(o Options, families []constrained) (list []instance) {
	for _, k := range families {
		if o.Short {
			k.low, k.strengths = max(3, k.low/2/k.step*k.step), k.strengths[:1]
		}
		for _, s := range k.strengths {
			for seed := range o.seeds(usualSeeds, shortSeeds) {
				x := instance{family: k.family, size: k.low + seed%3*k.step, strength: s, seed: uint64(seed)}
				x.attractive = k.family.name == grids.name
				list = append(list, x)
			}
		}
	}
	return list
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
