package evaluate

// Experiment "strength": errors against the strength of the couplings.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/lab/chart"
)

func strength() Experiment {
	return Experiment{
		Name: "strength",
		Description: "|Δ ln Z| and the error of the marginals against the strength of the couplings, on " +
			"four families of graphs and on attractive grids",
		Run: func(ctx context.Context, o Options) ([]Row, error) {
			methods, err := Named("bp", "symmetry-cp", "few-regions", "tight-4", "tight-8", "tree-8", "tree-16")
			if err != nil {
				return nil, err
			}
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

// curves are one value against another, per method: the median over the rows with the same x, with
// the quartiles. Methods without it are left out.
func curves(rows []Row, x, value func(Row) float64) (list []chart.Curve) {
	for _, method := range names(rows, func(r Row) string { return r.Method }) {
		var where []float64
		at := map[float64][]float64{}
		for _, r := range rows {
			if v := value(r); r.Method == method && !math.IsNaN(v) && !math.IsNaN(x(r)) {
				if !slices.Contains(where, x(r)) {
					where = append(where, x(r))
				}
				at[x(r)] = append(at[x(r)], v)
			}
		}

		slices.Sort(where)
		c := chart.Curve{Name: method}
		for _, at1 := range where {
			c.Points = append(c.Points, chart.Summary(at1, at[at1]))
		}
		if len(c.Points) > 0 {
			list = append(list, c)
		}
	}

	return list
}

// group is the rows of one group of models.
type group struct {
	name string
	rows []Row
}

// groups parts the rows by a name.
func groups(rows []Row, by func(Row) string) (list []group) {
	for _, name := range names(rows, by) {
		list = append(list, group{name, slices.DeleteFunc(slices.Clone(rows), func(r Row) bool {
			return by(r) != name
		})})
	}
	return list
}

// file makes a file name of a title.
func file(parts ...string) string {
	return strings.NewReplacer(" ", "-", ",", "", "×", "x", "–", "-", "Δ=", "", ".",
		"_").Replace(strings.Join(parts, "-"))
}

func ofStrength(r Row) float64 { return r.Strength }
func ofStep(r Row) float64     { return r.Step }
func ofError(r Row) float64    { return r.Error }

func strengthFigures(rows []Row) (list []Figure) {
	for _, g := range groups(rows, Row.label) {
		for _, what := range []struct {
			file, label string
			value       func(Row) float64
		}{
			{"lnz", "|Δ ln Z| (nats), median and quartiles", ofError},
			{"marginals", "mean total variation of marginals", func(r Row) float64 { return r.MarginalError }},
		} {
			l := chart.Lines{Title: "Error against strength: " + g.name, X: chart.Axis{Label: "strength Δ (nats)"},
				Y: chart.Axis{Label: what.label, Log: true, Floor: 1e-15}, Curves: curves(g.rows, ofStrength, what.value)}
			list = append(list, Figure{Name: file("strength", g.name, what.file), Draw: l.WriteSVG})
		}
	}
	return list
}

// strengthSummary is a table per family: the median error of every method at every strength.
func strengthSummary(rows []Row) string {
	var b strings.Builder
	for _, g := range groups(rows, Row.label) {
		summarise(&b, g.name+": median |Δ ln Z| (nats)", "Δ", curves(g.rows, ofStrength, ofError))
		summarise(&b, g.name+": median of the marginals' mean total variation", "Δ",
			curves(g.rows, ofStrength, func(r Row) float64 {
				return r.MarginalError
			}))
	}
	return b.String()
}

// summarise writes curves as lines of text.
func summarise(b *strings.Builder, title, x string, list []chart.Curve) {
	fmt.Fprintln(b, title)
	for _, c := range list {
		fmt.Fprintf(b, "  %-24s", c.Name)
		for _, p := range c.Points {
			fmt.Fprintf(b, "  %s=%g: %s", x, p.X, short(p.Y))
		}
		fmt.Fprintln(b)
	}
}
