package evaluate

// Experiment "components": symmetry-CP with more and more components, in every map and with both
// choices of cores.

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/basetensor/basetensor/lab/chart"
	"github.com/basetensor/basetensor/pkg/query"
)

func components() Experiment {
	return Experiment{
		Name: "components",
		Description: "|Δ ln Z| and the residual ρ of symmetry-CP against the number of components (step), " +
			"for every map and choice of cores",
		Run: func(ctx context.Context, o Options) ([]Row, error) {
			counts := []int{1, 2, 4, 8, 16}
			if o.Short {
				counts = []int{1, 2}
			}
			o.Methods = nil
			return compare(ctx, o, componentModels(o), symmetryCP(counts), false)
		},
		Figures: componentFigures,
		Tables:  componentTables,
		Summary: func(rows []Row) string {
			return medians(rows, sized, "r", ofStep, named{"median |Δ ln Z| (nats)", ofError}, named{"median ρ", ofResidual})
		},
	}
}

// symmetryCP are all the ways to decompose with so many components, or as many as the work for
// learning allows.
func symmetryCP(counts []int) (list []Method) {
	for _, cores := range []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables} {
		for _, maps := range []query.MapKind{query.MapIdentity, query.MapOrthogonal, query.MapBP} {
			for _, n := range counts {
				m := Settings(string(maps)+", "+string(cores), query.Settings{
					Method:     query.MethodSymmetryCP,
					Objective:  query.ObjectiveFrobenius,
					Components: n,
					Maps:       maps,
					Cores:      cores,
					Budget:     3e9,
				})
				m.Step = float64(n)
				list = append(list, m)
			}
		}
	}
	return list
}

func componentModels(o Options) (list []instance) {
	for _, x := range []instance{
		{family: complete, size: 5, strength: 1}, {family: grids, size: 3, strength: 1},
		{family: grids, size: 4, strength: 1},
		{family: grids, size: 4, strength: 1, attractive: true}, {family: weiss, size: 8, strength: 0.1},
	} {
		if o.Short && (x.family.name == weiss.name || x.size == 4) {
			continue
		}
		for seed := range o.seeds(usualSeeds, shortSeeds) {
			x.seed = uint64(seed)
			list = append(list, x)
		}
	}
	return list
}

// sized is a label with the number of variables.
func sized(r Row) string { return fmt.Sprintf("%s, %d variables", r.label(), r.Variables) }

func componentFigures(rows []Row) []Figure {
	x := chart.Axis{Label: "components", Log: true}
	y := chart.Axis{Label: "|Δ ln Z| (nats), median and quartiles", Log: true, Floor: 1e-6}
	z := chart.Axis{Label: "ρ, median and quartiles", Log: true, Floor: math.SmallestNonzeroFloat64}
	called := func(g group) []string {
		name := strings.Fields(g.name)[0] + " " + fmt.Sprint(g.rows[0].Variables)
		if g.rows[0].Attractive {
			name += " attractive"
		}
		return []string{"components", name}
	}
	return drawn(rows, sized, called, lines{"Error against components", "lnz", x, y, ofStep, ofError},
		lines{"Residual against components", "residual", x, z, ofStep, ofResidual})
}

// componentTables are of the least and the largest number of components.
func componentTables(rows []Row) []Table {
	ends := map[string][2]float64{} // the least and the largest number of components
	for _, r := range rows {
		e, ok := ends[sized(r)]
		if !ok {
			e = [2]float64{r.Step, r.Step}
		}
		ends[sized(r)] = [2]float64{min(e[0], r.Step), max(e[1], r.Step)}
	}
	var some []Row
	for _, r := range rows {
		if e := ends[sized(r)]; r.Step == e[0] || r.Step == e[1] {
			some = append(some, r)
		}
	}
	by := func(r Row) string { return fmt.Sprintf("%s, r = %g", sized(r), r.Step) }
	return []Table{{"lnz", pivot("median \\|Δ ln Z\\|", some, by, methodOf, ofError)}}
}
