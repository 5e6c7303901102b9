package bayesnet

// Deterministic nodes: functions of their parents' states.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/tensor"
)

// function is the table of a node that is a function of its parents: values has the node's state for all of theirs, the last
// parent fastest. It is a sum of boxes (products of sets of states, on which the function is constant) where these need fewer
// numbers than the table: so are conjunctions, thresholds and maxima of many parents.
func function(shape, values []int) tensor.Tensor {
	parents, d := shape[:len(shape)-1], shape[len(shape)-1]
	width := d
	for _, n := range parents {
		width += n
	}
	size := len(values) * d
	b := &boxes{shape: shape, width: width, most: (size - 1) / (width + 1)}
	for _, n := range parents {
		b.sides = append(b.sides, slices.Repeat([]bool{true}, n))
	}
	all := make([]int, len(parents))
	for k := range all {
		all[k] = k
	}
	if b.split(all, parents, values) {
		return b.sum()
	}
	t := &tensor.Dense{Shape: shape, Data: make([]float64, size)}
	for i, x := range values {
		t.Data[i*d+x] = 1
	}
	return t
}

// boxes are disjoint sets of states of the parents, each with a state of the node.
type boxes struct {
	shape []int
	width int // numbers of a box
	most  int // boxes that are worth it
	sides [][]bool
	terms [][]float64 // per box: the sides, one behind another, and the node's state
}

// split divides the function of some parents into boxes within the sides as they are; false: into too many.
func (b *boxes) split(parents, dims, values []int) bool {
	if !slices.ContainsFunc(values, func(x int) bool { return x != values[0] }) {
		return b.add(values[0])
	}
	// the parent whose states fall apart into few groups, most of them constant
	best, bestCost := -1, 0
	var bestGroups [][]int
	for k := range parents {
		groups := alike(dims, values, k)
		cost := 0
		for _, g := range groups {
			if part := slice(dims, values, k, g[0]); slices.ContainsFunc(part, func(x int) bool { return x != part[0] }) {
				cost += len(values)
			} else {
				cost++
			}
		}
		if best < 0 || cost < bestCost {
			best, bestCost, bestGroups = k, cost, groups
		}
	}
	p := parents[best]
	rest, restDims := slices.Delete(slices.Clone(parents), best, best+1), slices.Delete(slices.Clone(dims), best, best+1)
	for _, g := range bestGroups {
		side := make([]bool, b.shape[p])
		for _, x := range g {
			side[x] = true
		}
		whole := b.sides[p]
		b.sides[p] = side
		ok := b.split(rest, restDims, slice(dims, values, best, g[0]))
		b.sides[p] = whole
		if !ok {
			return false
		}
	}
	return true
}

// add keeps a box; false: there are too many.
func (b *boxes) add(state int) bool {
	if len(b.terms) == b.most {
		return false
	}
	term := make([]float64, 0, b.width)
	for _, side := range b.sides {
		for _, in := range side {
			term = append(term, indicator(in))
		}
	}
	for x := range b.shape[len(b.shape)-1] {
		term = append(term, indicator(x == state))
	}
	b.terms = append(b.terms, term)
	return true
}

func indicator(in bool) float64 {
	if in {
		return 1
	}
	return 0
}

// sum is the sum of the boxes.
func (b *boxes) sum() *tensor.CP {
	t := &tensor.CP{Shape: b.shape, Vectors: make([][]float64, len(b.shape))}
	for _, term := range b.terms {
		t.Weights = append(t.Weights, 1)
		from := 0
		for k, n := range b.shape {
			t.Vectors[k] = append(t.Vectors[k], term[from:from+n]...)
			from += n
		}
	}
	return t
}

// alike groups the states of a parent for which the function of the others is the same.
func alike(dims, values []int, k int) (groups [][]int) {
	var parts [][]int
	for x := range dims[k] {
		part := slice(dims, values, k, x)
		g := slices.IndexFunc(parts, func(other []int) bool { return slices.Equal(part, other) })
		if g < 0 {
			g, parts, groups = len(parts), append(parts, part), append(groups, nil)
		}
		groups[g] = append(groups[g], x)
	}
	return groups
}

// slice is the function with parent k at state x.
func slice(dims, values []int, k, x int) []int {
	inner := 1
	for _, n := range dims[k+1:] {
		inner *= n
	}
	part := make([]int, 0, len(values)/dims[k])
	for from := x * inner; from < len(values); from += dims[k] * inner {
		part = append(part, values[from:from+inner]...)
	}
	return part
}
