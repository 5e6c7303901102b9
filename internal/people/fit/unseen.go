package fit

// What cases say nothing of.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/base/nearest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// mostUnseen bounds the variables and values that are named.
const mostUnseen = 5

// Unseen is what no case observes.
type Unseen struct {
	Variables []int                     // that no case observes
	Values    []factorgraph.Observation // of other variables, that no case has
}

// Unseen returns the variables of a model that no case observes, and the values of the others that no case has. Time linear in the cases'
// cells and in the values of all variables.
func (d *Data) Unseen(m *factorgraph.Model) (u Unseen) {
	isObserved := make([][]bool, len(m.Domains))
	for v, domain := range m.Domains {
		isObserved[v] = make([]bool, domain)
	}
	for _, c := range d.distinct {
		for _, o := range c.observed {
			isObserved[o.variable][o.value] = true
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

// Texts says what is unseen in at most two lines, and what follows for the tables. hasPrior says that something is added to the counts of
// the cases.
func (u Unseen) Texts(l *factorgraph.Labels, hasPrior bool) (lines []string) {
	if len(u.Variables) > 0 {
		names := first(len(u.Variables), "variable", func(k int) string { return short(l.OfVariable(u.Variables[k])) })
		lines = append(lines, "no case observes "+names+
			": a table without observations follows from other variables and from the table that the fit begins with")
	}
	if len(u.Values) > 0 {
		names := first(len(u.Values), "value", func(k int) string {
			return short(l.OfVariable(u.Values[k].Var)) + " = " + short(l.OfValue(u.Values[k].Var, u.Values[k].Value))
		})
		consequence := "the probability becomes 0 where the variable is observed, and --pseudocount or --prior keeps it above 0"
		if hasPrior {
			consequence = "where the variable is observed only the counts that are added decide"
		}
		lines = append(lines, "no case has "+names+": "+consequence)
	}
	return lines
}

func short(name string) string { return fmt.Sprintf("%q", nearest.Short(name)) }

// first lists the first of n names, and counts the others.
func first(n int, thing string, name func(k int) string) string {
	var names []string
	for k := range min(n, mostUnseen) {
		names = append(names, name(k))
	}
	text := strings.Join(names, ", ")
	switch more := n - mostUnseen; {
	case more == 1:
		text += " and 1 more " + thing
	case more > 1:
		text += fmt.Sprintf(" and %d more %ss", more, thing)
	}
	return text
}

// Unreached are the rows of tables that no case is expected to have: such a row has only the counts that are added, or stays as it is.
type Unreached struct {
	Rows  int    `json:"rows"`
	All   int    `json:"all"`             // rows of all tables
	First string `json:"first,omitempty"` // of the unreached ones
}

// reachedShare is the least share of the weight of all cases that a row must be expected to have.
const reachedShare = 1e-9

// unreached looks at the expected counts of the cases, by table.
func (f *fitting) unreached(counts [][]float64) (u Unreached) {
	for k, c := range f.cpts {
		row := 0
		c.rows(func(from int) {
			sum := 0.0
			for x := range c.values {
				sum += counts[k][from+x*c.stride]
			}
			if sum <= reachedShare*f.data.Weight {
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

// Text says which rows no case reaches, and what they are; "" if cases reach all. hasPrior says that something is added to the counts.
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
