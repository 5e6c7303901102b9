// Bucket elimination over maps from assignments to numbers: slow, short, and nobody else's.

package examples

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// bucketTable is a function of vars (increasing), by the row-major index of their values.
type bucketTable struct {
	vars   []int
	values []float64
}

// eliminate returns ln Z of a model of tables under hard evidence, summing out the variable with the fewest neighbours.
func eliminate(m *factorgraph.Model, e factorgraph.Evidence) float64 {
	domains := slices.Clone(m.Domains)
	offset := make([]int, len(domains)) // an observed variable becomes one with a single value
	for _, o := range e.Hard {
		domains[o.Var], offset[o.Var] = 1, o.Value
	}
	var tables []bucketTable
	for _, f := range m.Factors {
		vars := slices.Sorted(slices.Values(f.Scope))
		data := f.Table.(*tensor.Dense).Data
		tables = append(tables, tabulate(vars, domains, func(x map[int]int) float64 {
			i := 0
			for _, v := range f.Scope {
				i = i*m.Domains[v] + x[v] + offset[v]
			}
			return data[i]
		}))
	}
	logZ := 0.0
	left := map[int]bool{}
	for v := range domains {
		left[v] = true
	}
	for len(left) > 0 {
		v := cheapest(left, tables, domains)
		delete(left, v)
		var bucket, rest []bucketTable
		for _, t := range tables {
			if slices.Contains(t.vars, v) {
				bucket = append(bucket, t)
			} else {
				rest = append(rest, t)
			}
		}
		vars := slices.DeleteFunc(union(bucket), func(u int) bool { return u == v })
		sum := tabulate(vars, domains, func(x map[int]int) float64 {
			total := 0.0
			for x[v] = 0; x[v] < domains[v]; x[v]++ {
				p := 1.0
				for _, t := range bucket {
					p *= t.at(x, domains)
				}
				total += p
			}
			delete(x, v)
			return total
		})
		largest := slices.Max(sum.values)
		for i := range sum.values {
			sum.values[i] /= largest
		}
		logZ += math.Log(largest)
		tables = append(rest, sum)
	}
	for _, t := range tables {
		logZ += math.Log(t.values[0])
	}
	return logZ
}

func union(tables []bucketTable) []int {
	var out []int
	for _, t := range tables {
		out = append(out, t.vars...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func cheapest(left map[int]bool, tables []bucketTable, domains []int) int {
	best, bestCost := -1, math.Inf(1)
	for v := range domains {
		if !left[v] {
			continue
		}
		cost := 1.0
		for _, u := range union(slices.DeleteFunc(slices.Clone(tables), func(t bucketTable) bool {
			return !slices.Contains(t.vars, v)
		})) {
			cost *= float64(domains[u])
		}
		if cost < bestCost {
			best, bestCost = v, cost
		}
	}
	return best
}

func tabulate(vars, domains []int, f func(x map[int]int) float64) bucketTable {
	size := 1
	for _, v := range vars {
		size *= domains[v]
	}
	t := bucketTable{vars: vars, values: make([]float64, size)}
	for i := range size {
		x, rest := map[int]int{}, i
		for k := len(vars) - 1; k >= 0; k-- {
			x[vars[k]] = rest % domains[vars[k]]
			rest /= domains[vars[k]]
		}
		t.values[i] = f(x)
	}
	return t
}

func (t bucketTable) at(x map[int]int, domains []int) float64 {
	i := 0
	for _, v := range t.vars {
		i = i*domains[v] + x[v]
	}
	return t.values[i]
}
