package families

// Truths of models too wide for sweeps: permutations by sets, Latin squares by rows, parities by elimination modulo 2.

import (
	"context"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// weights are the factors of one variable each, by variable.
func weights(m *factorgraph.Model) [][]float64 {
	list := make([][]float64, len(m.Domains))
	for _, f := range m.Factors {
		if len(f.Scope) == 1 {
			list[f.Scope[0]] = f.Table.(*tensor.Dense).Data
		}
	}
	return list
}

// noMarginals are zeros for every value.
func noMarginals(domains []int) [][]float64 {
	list := make([][]float64, len(domains))
	for v, d := range domains {
		list[v] = make([]float64, d)
	}
	return list
}

// assigned is the truth of n variables of n values that are all different: Σ over permutations of Π a(i, π(i)), by sets of values. It
// takes 2^(n+4) bytes. Errors: fault.OverBudget for more than 20 variables.
func assigned(_ context.Context, m *factorgraph.Model) (float64, [][]float64, error) {
	n := len(m.Domains)
	if n > 20 {
		return 0, nil, fault.New(fault.OverBudget, "families: permutations of %d values", n)
	}
	a, marginals := weights(m), noMarginals(m.Domains)
	// up[set] is the sum over the first |set| variables with the values in set, down[set] over the others with the remaining values
	up, down := make([]float64, 1<<n), make([]float64, 1<<n)
	up[0], down[1<<n-1] = 1, 1
	for set := range up {
		i := bits.OnesCount(uint(set))
		for x := range n {
			if i < n && set>>x&1 == 0 {
				up[set|1<<x] += up[set] * a[i][x]
			}
		}
	}
	z := up[1<<n-1]
	for set := 1<<n - 2; set >= 0; set-- {
		i := bits.OnesCount(uint(set))
		for x := range n {
			if set>>x&1 == 0 {
				w := a[i][x] * down[set|1<<x]
				down[set] += w
				marginals[i][x] += up[set] * w / z
			}
		}
	}
	return math.Log(z), marginals, nil
}

// square is the truth of Latin squares with weights of their cells, row by row: a state is the set of used values per column. Errors:
// fault.OverBudget for an order above 6, and the context's.
func square(ctx context.Context, m *factorgraph.Model) (float64, [][]float64, error) {
	n := int(math.Round(math.Sqrt(float64(len(m.Domains)))))
	if n > 6 {
		return 0, nil, fault.New(fault.OverBudget, "families: Latin squares of order %d", n)
	}
	cells, marginals := weights(m), noMarginals(m.Domains)
	full := uint64(1)<<(n*n) - 1
	up := make([]map[uint64]float64, n+1)
	up[0] = map[uint64]float64{0: 1}
	for r := range n {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		up[r+1] = map[uint64]float64{}
		for _, state := range slices.Sorted(maps.Keys(up[r])) { // the order of sums decides their last bits
			w := up[r][state]
			rows(n, state, cells[r*n:], func(next uint64, _ []int, weight float64) { up[r+1][next] += w * weight })
		}
	}
	z := up[n][full]
	down := map[uint64]float64{full: 1}
	for r := n - 1; r >= 0; r-- {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		before := map[uint64]float64{}
		for _, state := range slices.Sorted(maps.Keys(up[r])) {
			w := up[r][state]
			rows(n, state, cells[r*n:], func(next uint64, row []int, weight float64) {
				weight *= down[next]
				before[state] += weight
				for c, x := range row {
					marginals[r*n+c][x] += w * weight / z
				}
			})
		}
		down = before
	}
	return math.Log(z), marginals, nil
}

// rows calls each for every next row of unused values: bit c·n + x of a state says that column c has used x.
func rows(n int, state uint64, cells [][]float64, each func(next uint64, row []int, weight float64)) {
	row := make([]int, n)
	var place func(c int, used, next uint64, weight float64)
	place = func(c int, used, next uint64, weight float64) {
		if c == n {
			each(next, row, weight)
			return
		}
		for x := range n {
			if bit := uint64(1) << (c*n + x); used>>x&1 == 0 && state&bit == 0 {
				row[c] = x
				place(c+1, used|1<<x, next|bit, weight*cells[c][x])
			}
		}
	}
	place(0, 0, state, 1)
}

// linear is the truth of parity constraints without weights: Z = 2^(n − rank), and a variable is free or decided. Contradictions have
// ln Z = −∞ and no marginals.
func linear(_ context.Context, m *factorgraph.Model) (float64, [][]float64, error) {
	var reduced []equation // the first variable of each is in no other
	for _, f := range m.Factors {
		e := equation{odd: f.Table.(*tensor.Dense).Data[0] == 0}
		for _, v := range f.Scope {
			e.flip(v)
		}
		for _, r := range reduced {
			if slices.Contains(e.variables, r.variables[0]) {
				e.add(r)
			}
		}
		if len(e.variables) == 0 {
			if e.odd {
				return math.Inf(-1), nil, nil
			}
			continue
		}
		for k := range reduced {
			if slices.Contains(reduced[k].variables, e.variables[0]) {
				reduced[k].add(e)
			}
		}
		reduced = append(reduced, e)
	}
	marginals := make([][]float64, len(m.Domains))
	for v := range marginals {
		marginals[v] = []float64{0.5, 0.5}
	}
	for _, r := range reduced {
		switch {
		case len(r.variables) > 1:
		case r.odd:
			marginals[r.variables[0]] = []float64{0, 1}
		default:
			marginals[r.variables[0]] = []float64{1, 0}
		}
	}
	return float64(len(m.Domains)-len(reduced)) * math.Ln2, marginals, nil
}

// equation says that the sum of these variables is odd, or even.
type equation struct {
	variables []int
	odd       bool
}

// flip adds a variable, or removes it.
func (e *equation) flip(v int) {
	if k := slices.Index(e.variables, v); k >= 0 {
		e.variables = slices.Delete(e.variables, k, k+1)
		return
	}
	e.variables = append(e.variables, v)
}

func (e *equation) add(other equation) {
	for _, v := range other.variables {
		e.flip(v)
	}
	e.odd = e.odd != other.odd
}
