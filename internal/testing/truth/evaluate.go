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

// Weights returns Π_j φ_j(x) for every assignment x of a model, the last variable fastest.
func Weights(m *factorgraph.Model) (out []oracle.Number) {
	tables := make([][]oracle.Number, len(m.Factors))
	due := make([][]int, len(m.Domains)+1) // due[v]: the factors whose last variable is v−1
	for j, f := range m.Factors {
		tables[j] = oracle.Numbers(f.Table)
		last := 0
		for _, v := range f.Scope {
			last = max(last, v+1)
		}
		due[last] = append(due[last], j)
	}
	x := make([]int, len(m.Domains))
	var visit func(v int, w oracle.Number) // w is the product of the factors that are due before v
	visit = func(v int, w oracle.Number) {
		for _, j := range due[v] {
			i := 0
			for _, u := range m.Factors[j].Scope {
				i = i*m.Domains[u] + x[u]
			}
			w = w.Mul(tables[j][i])
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
