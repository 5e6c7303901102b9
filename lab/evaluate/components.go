package evaluate

// Experiment "components": symmetry-CP with more and more components, in every map and with both
// choices of cores.

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/basetensor/basetensor/internal/network/btn"
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
			var b strings.Builder
			for _, g := range groups(rows, sized) {
				summarise(&b, g.name+": median |Δ ln Z| (nats)", "r", curves(g.rows, ofStep, ofError))
				summarise(&b, g.name+": median ρ", "r", curves(g.rows, ofStep, ofResidual))
			}
			return b.String()
		},
	}
}

// symmetryCP are all the ways to decompose with so many components, or as many as the work for
// learning allows.
func symmetryCP(counts []int) (list []Method) {
	for _, cores := range []btn.CoreChoice{btn.CoresAreFactors, btn.CoresAreVariables} {
		for _, maps := range []btn.MapKind{btn.MapIdentity, btn.MapOrthogonal, btn.MapBP} {
			for _, n := range counts {
				m := Settings(string(maps)+", "+string(cores), btn.Settings{
					Method:     btn.MethodSymmetryCP,
					Objective:  query.ObjectiveFrobenius,
					Components: n,
					Maps:       maps,
					Cores:      cores,
					LearnFlops: 1e8,
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
		for seed := range o.seeds() {
			x.seed = uint64(seed)
			list = append(list, x)
		}
	}
	return list
}

// sized is a label with the number of variables.
func sized(r Row) string { return fmt.Sprintf("%s, %d variables", r.label(), r.Variables) }

func ofResidual(r Row) float64 { return r.Residual }

func componentFigures(rows []Row) (list []Figure) {
	for _, g := range groups(rows, sized) {
		name := strings.Fields(g.name)[0] + " " + fmt.Sprint(g.rows[0].Variables)
		if g.rows[0].Attractive {
			name += " attractive"
		}
		x := chart.Axis{Label: "components", Log: true}
		lnz := chart.Lines{Title: "Error against components: " + g.name, X: x,
			Y: chart.Axis{
				Label: "|Δ ln Z| (nats), median and quartiles",
				Log:   true,
				Floor: 1e-6,
			}, Curves: curves(g.rows, ofStep, ofError)}
		rho := chart.Lines{Title: "Residual against components: " + g.name, X: x,
			Y: chart.Axis{
				Label: "ρ, median and quartiles",
				Log:   true,
				Floor: math.SmallestNonzeroFloat64,
			}, Curves: curves(g.rows, ofStep, ofResidual)}
		list = append(list, Figure{
			Name: file("components", name, "lnz"),
			Draw: lnz.WriteSVG,
		}, Figure{Name: file("components", name, "residual"), Draw: rho.WriteSVG})
	}

	return list
}
