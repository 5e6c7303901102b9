package bp

// Chains of counters for symmetry-CP factors of several terms: the term travels along the chain, so
// that it is a tree.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// termChain is a chain under construction: the counts that are reached after the legs so far.
type termChain struct {
	n      *factors
	t      *tensor.SymmetryCP
	steps  []int // offset of a value at a level in a count vector's box
	counts []int // places, ascending
	index  int   // over (term, count); −1 before the first leg
}

// addTermChain adds Σ_i α_i S^(i) ∘ R^(i) as one table per leg, over (term and count before, value,
// term and count after), and one over the last term and count, α_i S^(i). It returns false, and adds
// nothing, above maxChain entries.
func (n *factors) addTermChain(at []incidence, scope []int, t *tensor.SymmetryCP) bool {
	c := &termChain{n: n, t: t, steps: []int{0}, counts: []int{0}, index: -1}
	step := 1
	for _, side := range slices.Backward(t.Levels.Shape()) {
		c.steps = slices.Insert(c.steps, 1, step)
		step *= side
	}

	total, counts := 0.0, c.counts
	for k := range scope {
		next := c.after(k, counts)
		total += float64(len(t.Terms)*len(counts)) * float64(t.Shape[k]*len(t.Terms)*len(next))
		if total > maxChain {
			return false
		}
		counts = next
	}

	for k, i := range scope {
		at[k] = c.leg(k, i)
	}
	values := make([]scaled.Number, 0, len(t.Terms)*len(c.counts))
	for _, term := range t.Terms {
		for _, place := range c.counts {
			values = append(values, term.S.At(place).Mul(scaled.FromFloat(term.Alpha)))
		}
	}

	data, exp := common(values)
	n.e.Scale = n.e.Scale.Mul(scaled.Make(1, exp))
	n.add([]int{c.index}, data)
	return true
}

// after returns the counts after leg k.
func (c *termChain) after(k int, counts []int) []int {
	seen := map[int]bool{}
	var next []int
	for _, place := range counts {
		for _, level := range c.t.Levels.Of[k] {
			if to := place + c.steps[level]; !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	slices.Sort(next)
	return next
}

// leg adds the table of leg k, variable i.
func (c *termChain) leg(k, i int) incidence {
	next := c.after(k, c.counts)
	terms, d := len(c.t.Terms), c.t.Shape[k]
	rows, columns := terms*len(c.counts), terms*len(next)
	if c.index < 0 {
		rows = 1
	}
	data := make([]float64, rows*d*columns)
	for z, term := range c.t.Terms {
		for from, place := range c.counts {
			row := z*len(c.counts) + from
			if c.index < 0 {
				row = 0
			}
			for x, level := range c.t.Levels.Of[k] {
				to, _ := slices.BinarySearch(next, place+c.steps[level])
				value := 1.0
				if term.R != nil && term.R[k] != nil {
					value = term.R[k][x]
				}
				data[(row*d+x)*columns+z*len(next)+to] = value
			}
		}
	}

	after := c.n.index(columns)
	scope, slot := []int{c.index, i, after}, 1
	if c.index < 0 {
		scope, slot = scope[1:], 0
	}
	c.index, c.counts = after, next
	return incidence{c.n.add(scope, data), slot}
}

// common returns the numbers as float64 over one power of two, the largest in [1, 2).
func common(xs []scaled.Number) (data []float64, exp int64) {
	top := scaled.Number{}
	for _, x := range xs {
		if x.Abs().Cmp(top) > 0 {
			top = x.Abs()
		}
	}
	data = make([]float64, len(xs))
	for i, x := range xs {
		data[i] = scaled.Number{Mant: x.Mant, Exp: x.Exp - top.Exp}.Float64()
	}
	return data, top.Exp
}
