package evaluate

// Experiments "calibration" and "calibration-of-more": how true the stated uncertainties are.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/lab/chart"
)

func calibration() Experiment {
	return Experiment{
		Name: "calibration",
		Description: "the error of ln Z against the stated uncertainty: 300 random models of five " +
			"families, weak to strong, mixed and attractive",
		Run: func(ctx context.Context, o Options) ([]Row, error) {
			return compare(ctx, o, calibrationModels(o), only("tight-8"), false)
		},
		Figures: calibrationFigures,
		Summary: calibrationSummary,
		Tables:  calibrationTables,
	}
}

// calibrationOfMore is the same on the first two models of every setting: ladders on dense graphs,
// regions on sparse ones.
func calibrationOfMore() Experiment {
	x := calibration()
	x.Name = "calibration-of-more"
	x.Description = "calibration of whole ladders on dense graphs and of regions on sparse ones, on the " +
		"first two models of every setting"
	x.Run = func(ctx context.Context, o Options) (rows []Row, err error) {
		o.Seeds = 2
		for _, name := range []string{"tight-ladder", "few-regions"} {
			list := slices.DeleteFunc(calibrationModels(o), func(x instance) bool {
				dense := x.family.name == complete.name || x.family.name == bipartite.name
				return dense != (name == "tight-ladder")
			})
			more, err := compare(ctx, o, list, only(name), false)
			if rows = append(rows, more...); err != nil {
				return rows, err
			}
		}
		return rows, nil
	}
	return x
}

// calibrationModels are five families at six strengths, of sizes that change with the seed; every
// second one is attractive.
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
			for seed := range o.seeds(usualSeeds, shortSeeds) {
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

// calibrationTable is a line per group, and one of all.
func calibrationTable(rows []Row, by func(Row) string) []Table {
	const columns = "family | estimates | failed | none stated | to rounding | of the others within 3 × stated | median stated | median error"
	return []Table{{"families", table(columns, append(groups(rows, by), group{"**all**", rows}), func(rows []Row) []any {
		c := calibrate(rows, "")
		return []any{c.models, c.failed, c.unstated, c.settled, share(c.within, c.others()),
			middle([]float64{c.stated}), middle([]float64{c.err})}
	})}}
}

// calibrationTables are of the families, for each method where there are several.
func calibrationTables(rows []Row) []Table {
	if len(names(rows, methodOf)) > 1 {
		return calibrationTable(rows, func(r Row) string { return r.Method + ", " + r.label() })
	}
	return constraintTables(rows)
}

func constraintTables(rows []Row) []Table { return calibrationTable(rows, Row.label) }
