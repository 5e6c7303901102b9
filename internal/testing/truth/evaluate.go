// Package truth compares answers of the product with the truth: enumeration in exact arithmetic, on
// models drawn at random.
//
// The numbers and the entries of factors are those of package oracle, which reads the fields of models and calls nothing
// else of the product. Violations are minimised and written down as files that the command in run/ takes again.
package truth

// The weights of all assignments.

import (
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Weights returns the weight Π_j φ_j(x) of every assignment x of a model, in row-major order: the last variable changes fastest. The j-th
// factor is φ_j.
func Weights(m *factorgraph.Model) (out []oracle.Number) {
	tables := make([][]oracle.Number, len(m.Factors))
	complete := make([][]int, len(m.Domains)+1) // complete[v] lists the factors whose scope ends with variable v−1
	for j, f := range m.Factors {
		tables[j] = oracle.ExactEntries(f.Table)
		end := 0
		for _, v := range f.Scope {
			end = max(end, v+1)
		}
		complete[end] = append(complete[end], j)
	}

	// visit gives variable v and those after it all their values; w is the product of the factors that end before variable v−1.
	x := make([]int, len(m.Domains))
	var visit func(v int, w oracle.Number)
	visit = func(v int, w oracle.Number) {
		for _, j := range complete[v] {
			index := 0
			for _, u := range m.Factors[j].Scope {
				index = index*m.Domains[u] + x[u]
			}
			w = w.Mul(tables[j][index])
		}
		if v == len(x) {
			out = append(out, w)
			return
		}
		for x[v] = range m.Domains[v] {
			visit(v+1, w)
		}
	}
	visit(0, oracle.One)
	return out
}
