package fit

// What cases say nothing of.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/base/nearest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// maxListed bounds the variables and values that a text names.
const maxListed = 5

// Unseen is what no case observes.
type Unseen struct {
	Variables []int                     // variables that no case observes
	Values    []factorgraph.Observation // values of other variables that no case has
}

// Unseen returns the variables of a model that no case observes, and the values of the others that no case has. Time linear in the cases'
// cells and in the values of all variables.
func (d *Data) Unseen(m *factorgraph.Model) (u Unseen) {
	// isObserved[v][x] is set if a case has value x of variable v.
	isObserved := make([][]bool, len(m.Domains))
	for v, domain := range m.Domains {
		isObserved[v] = make([]bool, domain)
	}
	for _, c := range d.distinct {
		for _, observation := range c.observed {
			isObserved[observation.variable][observation.value] = true
		}
	}
	for v, values := range isObserved {
		if !slices.Contains(values, true) {
			u.Variables = append(u.Variables, v)
			continue
		}
		for x, hasCase := range values {
			if !hasCase {
				u.Values = append(u.Values, factorgraph.Observation{Var: v, Value: x})
			}
		}
	}
	return u
}

// Texts returns at most two lines: what is unseen, and what follows for the tables. hasPrior says that something is
// added to the counts of the cases.
func (u Unseen) Texts(labels *factorgraph.Labels, hasPrior bool) (lines []string) {
	if len(u.Variables) > 0 {
		names := listFirst(len(u.Variables), "variable", func(k int) string { return quoteName(labels.OfVariable(u.Variables[k])) })
		lines = append(lines, "no case observes "+names+
			": a table without observations follows from other variables and from the table that the fit begins with")
	}
	if len(u.Values) > 0 {
		names := listFirst(len(u.Values), "value", func(k int) string {
			return quoteName(labels.OfVariable(u.Values[k].Var)) + " = " + quoteName(labels.OfValue(u.Values[k].Var, u.Values[k].Value))
		})
		consequence := "the probability becomes 0 where the variable is observed, and --pseudocount or --prior keeps it above 0"
		if hasPrior {
			consequence = "where the variable is observed only the counts that are added decide"
		}
		lines = append(lines, "no case has "+names+": "+consequence)
	}
	return lines
}

// quoteName returns a name in quotes, shortened if it is long.
func quoteName(name string) string { return fmt.Sprintf("%q", nearest.Shorten(name)) }

// listFirst returns the names of the first maxListed of n things, and how many more there are. thing is what one of
// them is called.
func listFirst(n int, thing string, name func(k int) string) string {
	var names []string
	for k := range min(n, maxListed) {
		names = append(names, name(k))
	}
	text := strings.Join(names, ", ")
	switch others := n - maxListed; {
	case others == 1:
		text += " and 1 more " + thing
	case others > 1:
		text += fmt.Sprintf(" and %d more %ss", others, thing)
	}
	return text
}

// Unreached are the rows of tables that no case is expected to have: such a row has only the counts that are added, or stays as it is.
type Unreached struct {
	Rows  int    `json:"rows"`            // number of such rows
	All   int    `json:"all"`             // rows of all tables
	First string `json:"first,omitempty"` // description of the first such row
}

// minRowShare is the share of the weight of all cases up to which a row counts as unreached.
const minRowShare = 1e-9

// findUnreached counts the rows that hardly any case reaches: those whose expected counts add up to at most minRowShare of
// the cases' weight. A row of a table has the probabilities of a variable's values for one assignment of its parents.
// counts are the expected counts by table.
func (f *fitting) findUnreached(counts [][]float64) (u Unreached) {
	for k, c := range f.cpts {
		row := 0 // number of the row in its table
		c.forEachRow(func(first int) {
			sum := 0.0
			for x := range c.values {
				sum += counts[k][first+x*c.stride]
			}
			if sum <= minRowShare*f.data.Weight {
				if u.Rows++; u.Rows == 1 {
					u.First = f.model.DescribeRow(c.factor, slices.Index(f.model.Factors[c.factor].Scope, c.variable), row)
				}
			}
			u.All++
			row++
		})
	}
	return u
}

// Text says how many rows no case reaches and what becomes of them; "" if cases reach all rows. hasPrior says that
// something is added to the counts.
func (u Unreached) Text(hasPrior bool) string {
	if u.Rows == 0 {
		return ""
	}
	consequence := "they keep the numbers that the fit began with"
	if hasPrior {
		consequence = "they have only the counts that are added, and a pseudocount makes them uniform"
	}
	return fmt.Sprintf("no case reaches %d of %d rows (first in %s); %s", u.Rows, u.All, u.First, consequence)
}
