package evaluate

// Figures of families: a row per family.

import (
	"math"

	"github.com/basetensor/basetensor/lab/chart"
)

// familyFigures are one per question.
func familyFigures(rows []Row) []Figure {
	list := byFamily(rows)
	dots := func(name, title, label string, floor float64, marks []chart.Mark, groups ...chart.Values) Figure {
		d := chart.Dots{Title: title, X: chart.Axis{Label: label, Log: floor > 0, Floor: floor}, Groups: groups, Marks: marks}
		for _, g := range list {
			if g.name == "**all**" {
				g.name = "all"
			}
			d.Names = append(d.Names, g.name)
		}
		return Figure{Name: "families-" + name, Draw: d.WriteSVG}
	}
	values := func(name string, of func(rows []Row) chart.Point) chart.Values {
		v := chart.Values{Name: name}
		for _, g := range list {
			v.Points = append(v.Points, of(g.rows))
		}
		return v
	}
	at := func(x float64) chart.Point { return chart.Point{Y: x, Low: x, High: x} }
	within := func(method string, marginals bool) func([]Row) chart.Point {
		return func(rows []Row) chart.Point {
			c := cover(ofMethod(rows, method), marginals)
			return at(100 * float64(c.within) / float64(c.approximate))
		}
	}
	spread := func(method string, of func(covered) []float64) func([]Row) chart.Point {
		return func(rows []Row) chart.Point { return chart.Summary(0, of(cover(ofMethod(rows, method), false))) }
	}
	ratios := func(c covered) []float64 { return c.ratios }
	above := func(c covered) []float64 { return c.above }
	below := func(c covered) []float64 { return c.below }
	errors := func(method string) func([]Row) chart.Point {
		return func(rows []Row) chart.Point { return chart.Summary(0, finiteErrors(ofMethod(rows, method))) }
	}

	return []Figure{
		dots("coverage", "Is the error within three times the statement?", "approximate answers within (%)", 0,
			[]chart.Mark{{X: 95, Name: "goal of all: 95 %"}, {X: 90, Name: "goal of a family: 90 %"}},
			values("ln Z", within(ofAuto, false)), values("marginals", within(ofMarginals, true))),
		dots("tightness", "How wide are the statements? (quartiles)", "stated / error of ln Z", 0.01,
			[]chart.Mark{{X: 1. / 3, Name: "error 3 × stated"}, {X: 20, Name: "goal of the median: 20"}},
			values("auto", spread(ofAuto, ratios))),
		dots("error", "How large are errors? (quartiles)", "|Δ ln Z| (nats)", 1e-9, nil, values(ofAuto, errors(ofAuto)),
			values(ofSampled, errors(ofSampled)), values(ofAnnealing, errors(ofAnnealing)), values("bp", errors("bp"))),
		dots("annealing", "The error at equal processor time, against the annealer's", "median error / the annealer's (below 1: smaller)", 1e-3,
			[]chart.Mark{{X: 1, Name: "as large"}, {X: 1. / 3, Name: "a third"}},
			values(ofAuto, against(ofAuto)), values(ofSampled, against(ofSampled))),
		dots("bounds", "How far are the bounds? (quartiles)", "distance from ln Z (nats)", 1e-3, nil,
			values("lower", spread(ofAuto, below)), values("upper", spread(ofAuto, above)),
			values("lower, sampled", spread(ofSampled, below)), values("upper, sampled", spread(ofSampled, above))),
	}
}

func finiteErrors(rows []Row) (list []float64) {
	for _, r := range rows {
		if !math.IsNaN(r.Error) && !math.IsInf(r.Error, 0) {
			list = append(list, r.Error)
		}
	}
	return list
}

// against is the median error of a method times the root of its median processor time, over the annealer's: an annealer's error falls with
// the root of its time.
func against(method string) func(rows []Row) chart.Point {
	cost := func(rows []Row) float64 {
		cpu := chart.Summary(0, cover(rows, false).cpu).Y
		return chart.Summary(0, finiteErrors(rows)).Y * math.Sqrt(cpu)
	}
	return func(rows []Row) chart.Point {
		x := cost(ofMethod(rows, method)) / cost(ofMethod(rows, ofAnnealing))
		return chart.Point{Y: x, Low: x, High: x}
	}
}
