package evaluate

// Rows in groups, their curves, and figures and lines of text of them.

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/lab/chart"
)

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
	for _, method := range names(rows, methodOf) {
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

// ofMethod are the rows of a method.
func ofMethod(rows []Row, method string) (list []Row) {
	for _, r := range rows {
		if r.Method == method {
			list = append(list, r)
		}
	}
	return list
}

// The fields of rows that groups and axes are made of.
func methodOf(r Row) string         { return r.Method }
func familyOf(r Row) string         { return r.Family }
func ofStrength(r Row) float64      { return r.Strength }
func ofStep(r Row) float64          { return r.Step }
func ofError(r Row) float64         { return r.Error }
func ofMarginalError(r Row) float64 { return r.MarginalError }
func ofResidual(r Row) float64      { return r.Residual }
func ofFlops(r Row) float64         { return r.Flops }
func ofSeconds(r Row) float64       { return r.Seconds }

// lines is a figure of curves: y against x for every method.
type lines struct {
	title string // the group's name follows
	file  string // end of the file's name
	x, y  chart.Axis
	ofX   func(Row) float64
	ofY   func(Row) float64
}

// drawn draws these figures for every group of rows, in files called after the experiment and the group.
func drawn(by func(Row) string, called func(group) []string, list ...lines) func(rows []Row) []Figure {
	return func(rows []Row) (figures []Figure) {
		for _, g := range groups(rows, by) {
			for _, l := range list {
				c := chart.Lines{Title: l.title + ": " + g.name, X: l.x, Y: l.y, Curves: curves(g.rows, l.ofX, l.ofY)}
				name := strings.Join(slices.DeleteFunc(append(called(g), l.file), func(s string) bool { return s == "" }), "-")
				figures = append(figures, Figure{Name: fileNames.Replace(name), Draw: c.WriteSVG})
			}
		}
		return figures
	}
}

var fileNames = strings.NewReplacer(" ", "-", ",", "", "×", "x", "–", "-", "Δ=", "", ".", "_")

// named is a value with its name.
type named struct {
	name string
	of   func(Row) float64
}

// medians writes the curves of values as lines of text, for every group of rows.
func medians(by func(Row) string, x string, ofX func(Row) float64, values ...named) func(rows []Row) string {
	return func(rows []Row) string {
		var b strings.Builder
		for _, g := range groups(rows, by) {
			for _, v := range values {
				fmt.Fprintf(&b, "%s: %s\n", g.name, v.name)
				for _, c := range curves(g.rows, ofX, v.of) {
					fmt.Fprintf(&b, "  %-24s", c.Name)
					for _, p := range c.Points {
						fmt.Fprintf(&b, "  %s=%g: %s", x, p.X, short(p.Y))
					}
					fmt.Fprintln(&b)
				}
			}
		}
		return b.String()
	}
}
