package evaluate

// Coverage in the rows of families: the share of errors within the stated ones, the widths of bounds, and their validity.

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/lab/chart"
	"github.com/basetensor/basetensor/lab/families"
)

// sameness is the relative difference up to which an answer counts as the reference itself.
const sameness = 1e-9

// approximate reports whether an answer was given, and is truly an estimate.
func (r Row) approximate() bool {
	return !math.IsNaN(r.Estimate) && r.Uncertainty != 0 && !(r.Error <= sameness*max(1, math.Abs(r.LnZ)))
}

// covered are the counts of one family and method.
type covered struct {
	models, failed, approximate, within int
	unstated                            int       // of the approximate ones: nothing is stated, so they are not within
	errors, stated                      []float64 // of the approximate ones that state something
	ratios                              []float64 // stated/error
	bounded, broken                     int       // models with a bound, and where one is wrong
	below, above                        []float64 // ln Z − lower, upper − ln Z
	cpu                                 []float64
}

// cover counts rows; marginals: of the largest error of a probability.
func cover(rows []Row, marginals bool) (c covered) {
	for _, r := range rows {
		c.models++
		c.cpu = append(c.cpu, r.CPU)
		if lower, upper := !math.IsNaN(r.Lower), !math.IsNaN(r.Upper); lower || upper {
			c.bounded++
			slack := sameness * max(1, math.Abs(r.LnZ)) // the reference is rounded, too
			if r.Lower > r.LnZ+slack || r.Upper < r.LnZ-slack {
				c.broken++
			}
			if lower {
				c.below = append(c.below, r.LnZ-r.Lower)
			}
			if upper {
				c.above = append(c.above, r.Upper-r.LnZ)
			}
		}

		off, stated, approximate := r.Error, r.Uncertainty, r.approximate()
		if marginals {
			off, stated = r.Largest, r.MarginalStated
			approximate = !math.IsNaN(off) && r.Uncertainty != 0 && off > sameness
		}
		switch {
		case math.IsNaN(off):
			c.failed++
		case !approximate:
		case math.IsNaN(stated):
			c.approximate++
			c.unstated++
		default:
			c.approximate++
			c.errors, c.stated, c.ratios = append(c.errors, off), append(c.stated, stated), append(c.ratios, stated/off)
			if off <= 3*stated {
				c.within++
			}
		}
	}
	return c
}

// cells are the columns of one row of a coverage table.
func (c covered) cells() []any {
	worst := "–"
	if len(c.ratios) > 0 {
		worst = short(1 / slices.Min(c.ratios))
	}
	return []any{c.approximate, c.unstated, share(c.within, c.approximate), worst, middle(c.errors), middle(c.ratios)}
}

// share writes a of b in percent.
func share(a, b int) string {
	if b == 0 {
		return "–"
	}
	return fmt.Sprintf("%d of %d (%.1f %%)", a, b, 100*float64(a)/float64(b))
}

// middle writes a median; – without values.
func middle(values []float64) string {
	m := chart.Summary(0, values).Y
	if math.IsNaN(m) {
		return "–"
	}
	return short(m)
}

// byFamily are the rows in the sequence of families, and all together last.
func byFamily(rows []Row) (list []group) {
	for _, name := range families.Names() {
		var of []Row
		for _, r := range rows {
			if r.Family == name {
				of = append(of, r)
			}
		}
		if len(of) > 0 {
			list = append(list, group{name, of})
		}
	}
	return append(list, group{"**all**", rows})
}

// familySummary is the tables in Markdown.
func familySummary(rows []Row) string {
	var b strings.Builder
	for _, t := range familyTables(rows) {
		fmt.Fprintf(&b, "%s\n\n%s\n", t.Name, t.Text)
	}
	return b.String()
}

// familyTables are those that docs/evaluation/README.md shows.
func familyTables(rows []Row) []Table {
	return []Table{
		{"coverage", coverageTable(rows, ofAuto, ofMarginals)},
		{"bounds", boundsTable(ofMethod(rows, ofAuto))},
		{"methods", methodsTable(rows)},
		{"ways", waysTable(rows)},
		{"outside", outsideTable(ofMethod(rows, ofAuto), ofMethod(rows, ofMarginals))},
	}
}

// coverageTable shows ln Z in the rows of one method, and marginals in another's.
func coverageTable(rows []Row, lnz, marginals string) string {
	const columns = "family | models | approximate | none stated | within 3 × stated | worst error/stated | median error | stated/error " +
		"| marginals: approximate | none stated | within 3 × stated | worst error/stated | median error | stated/error"
	return table(columns, byFamily(rows), func(rows []Row) []any {
		z, m := cover(ofMethod(rows, lnz), false), cover(ofMethod(rows, marginals), true)
		return slices.Concat([]any{z.models}, z.cells(), m.cells())
	})
}

func boundsTable(rows []Row) string {
	const columns = "family | models | with bounds | wrong | ln Z − lower | upper − ln Z | standard error | tail index"
	return table(columns, byFamily(rows), func(rows []Row) []any {
		c := cover(rows, false)
		var errors, tails []float64
		for _, r := range rows {
			errors, tails = append(errors, r.StandardError), append(tails, r.Tail)
		}
		return []any{c.models, c.bounded, c.broken, middle(c.below), middle(c.above), middle(errors), middle(tails)}
	})
}

// methodsTable has the median error of every method, and the processor time of the system and the annealer.
func methodsTable(rows []Row) string {
	methods := names(rows, methodOf)
	columns := fmt.Sprintf("family | %s | seconds: %s | %s", strings.Join(methods, " | "), ofAuto, ofAnnealing)
	return table(columns, byFamily(rows), func(rows []Row) (cells []any) {
		for _, m := range methods {
			cells = append(cells, middleError(ofMethod(rows, m)))
		}
		for _, m := range []string{ofAuto, ofAnnealing} {
			cells = append(cells, middle(cover(ofMethod(rows, m), false).cpu))
		}
		return cells
	})
}

// middleError is the median |Δ ln Z| over all answers, and the number of models without one.
func middleError(rows []Row) string {
	list := finiteErrors(rows)
	if failed := len(rows) - len(list); failed > 0 {
		return fmt.Sprintf("%s (%d failed)", middle(list), failed)
	}
	return middle(list)
}

// waysTable says how every way of the system does over all families.
func waysTable(rows []Row) string {
	const columns = "method | models | failed | approximate | within 3 × stated | stated/error | bounds wrong | median error | seconds"
	return table(columns, groups(rows, methodOf), func(rows []Row) []any {
		c := cover(rows, false)
		return []any{c.models, c.failed, c.approximate, share(c.within, c.approximate), middle(c.ratios), share(c.broken, c.bounded),
			middleError(rows), middle(c.cpu)}
	})
}

// outsideTable lists the models with an error above three times the stated one, or with a wrong bound: first by ln Z, in the rows of one
// method, then by marginals, in the rows of another.
func outsideTable(lnz, marginals []Row) string {
	var b strings.Builder
	b.WriteString("| model | of | by | error | stated | bounds |\n|---|---|---|--:|--:|---|\n")
	for k, r := range slices.Concat(lnz, marginals) {
		of, off, stated := "ln Z", r.Error, r.Uncertainty
		if k >= len(lnz) {
			of, off, stated = "marginals", r.Largest, r.MarginalStated
		}
		c := cover([]Row{r}, k >= len(lnz))
		if c.approximate == c.within && c.broken == 0 {
			continue
		}
		bounds := "–"
		switch {
		case c.broken > 0:
			bounds = "wrong"
		case c.bounded > 0:
			bounds = "hold"
		}
		said := "none"
		if !math.IsNaN(stated) {
			said = short(stated)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.Model, of, r.Used, short(off), said, bounds)
	}
	return b.String()
}
