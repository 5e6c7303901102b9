package bp

// Chains of counters for symmetry-CP factors of several terms. The state of a chain is a term and a count, so that the tables form a tree.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// termChain is a chain under construction, after some of the legs. A count vector is a number, as in countspace: its place in the box of
// all.
type termChain struct {
	factors    *factors
	tensor     *tensor.SymmetryCP
	strides    []int // by level: by how much a leg at that level raises the number of a count vector
	counts     []int // the count vectors that the legs so far can have, ascending
	stateIndex int   // the index over (term, count) after the legs so far; −1 before the first leg
}

// addTermChain adds a factor Σ_i α_i S^(i) ∘ R^(i) as one table per leg, over (term and count before, value, term and count after), and one
// over the last term and count, α_i S^(i). It sets the incidences of the factor. If the tables had more than maxChainEntries entries, it
// returns false and adds nothing.
func (fs *factors) addTermChain(incidences []incidence, scope []int, t *tensor.SymmetryCP) bool {
	chain := &termChain{factors: fs, tensor: t, strides: []int{0}, counts: []int{0}, stateIndex: -1}
	stride := 1
	for _, side := range slices.Backward(t.Levels.Shape()) {
		chain.strides = slices.Insert(chain.strides, 1, stride)
		stride *= side
	}

	entries, counts := 0.0, chain.counts
	for k := range scope {
		next := chain.countsAfter(k, counts)
		entries += float64(len(t.Terms)*len(counts)) * float64(t.Shape[k]*len(t.Terms)*len(next))
		if entries > maxChainEntries {
			return false
		}
		counts = next
	}

	for k, i := range scope {
		incidences[k] = chain.addLeg(k, i)
	}
	values := make([]scaled.Number, 0, len(t.Terms)*len(chain.counts))
	for _, term := range t.Terms {
		for _, place := range chain.counts {
			values = append(values, term.S.At(place).Mul(scaled.FromFloat(term.Alpha)))
		}
	}

	data, exp := toCommonExponent(values)
	fs.expression.Scale = fs.expression.Scale.Mul(scaled.Make(1, exp))
	fs.addTable([]int{chain.stateIndex}, data)
	return true
}

// countsAfter returns the count vectors that follow counts by the values of leg k, ascending.
func (c *termChain) countsAfter(k int, counts []int) []int {
	seen := map[int]bool{}
	var next []int
	for _, count := range counts {
		for _, level := range c.tensor.Levels.Of[k] {
			if count := count + c.strides[level]; !seen[count] {
				seen[count] = true
				next = append(next, count)
			}
		}
	}
	slices.Sort(next)
	return next
}

// addLeg adds the table of leg k, which is variable i, and returns the leg's incidence. An entry is R's entry for the value if the terms
// before and after are the same and the value's level leads from the one count to the other, else 0.
func (c *termChain) addLeg(k, i int) incidence {
	next := c.countsAfter(k, c.counts)
	terms, d := len(c.tensor.Terms), c.tensor.Shape[k]
	rows, columns := terms*len(c.counts), terms*len(next)
	if c.stateIndex < 0 {
		rows = 1
	}
	data := make([]float64, rows*d*columns)
	for z, term := range c.tensor.Terms {
		for from, place := range c.counts {
			row := z*len(c.counts) + from
			if c.stateIndex < 0 {
				row = 0
			}
			for x, level := range c.tensor.Levels.Of[k] {
				to, _ := slices.BinarySearch(next, place+c.strides[level])
				value := 1.0
				if term.R != nil && term.R[k] != nil {
					value = term.R[k][x]
				}
				data[(row*d+x)*columns+z*len(next)+to] = value
			}
		}
	}

	after := c.factors.addIndex(columns)
	scope, slot := []int{c.stateIndex, i, after}, 1
	if c.stateIndex < 0 {
		scope, slot = scope[1:], 0
	}
	c.stateIndex, c.counts = after, next
	return incidence{c.factors.addTable(scope, data), slot}
}

// toCommonExponent returns numbers as data[i]·2^exp with one exponent, so that the largest is in ±[1, 2).
func toCommonExponent(xs []scaled.Number) (data []float64, exp int64) {
	largest := scaled.Number{}
	for _, x := range xs {
		if x.Abs().Cmp(largest) > 0 {
			largest = x.Abs()
		}
	}
	data = make([]float64, len(xs))
	for i, x := range xs {
		data[i] = scaled.Number{Mant: x.Mant, Exp: x.Exp - largest.Exp}.Float64()
	}
	return data, largest.Exp
}
