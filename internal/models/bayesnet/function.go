package bayesnet

// Deterministic nodes: functions of their parents' states.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/tensor"
)

// functionTable returns the table of a node that is a function of its parents: values has the node's state for each
// combination of their states, the last parent fastest.
//
// The table is a sum of boxes if these need fewer numbers than all entries, as conjunctions, thresholds and maxima of
// many parents do. A box is a product of sets of states, one set for each parent, on which the function is constant.
func functionTable(shape, values []int) tensor.Tensor {
	// As boxes: each takes boxNumbers + 1 numbers, those in its vectors and a weight. All boxes together may take size − 1 numbers, where
	// size is the number of entries of the table.
	parents, d := shape[:len(shape)-1], shape[len(shape)-1] // numbers of states
	boxNumbers := d
	for _, n := range parents {
		boxNumbers += n
	}
	size := len(values) * d
	b := &boxes{shape: shape, width: boxNumbers, mostBoxes: (size - 1) / (boxNumbers + 1)}
	for _, n := range parents {
		b.sides = append(b.sides, slices.Repeat([]bool{true}, n))
	}
	allParents := make([]int, len(parents))
	for k := range allParents {
		allParents[k] = k
	}
	if b.split(allParents, parents, values) {
		return b.asCP()
	}

	// as all entries
	t := &tensor.Dense{Shape: shape, Data: make([]float64, size)}
	for i, x := range values {
		t.Data[i*d+x] = 1
	}
	return t
}

// boxes are disjoint sets of combinations of the parents' states. In each of them the node has one state.
type boxes struct {
	shape     []int       // the numbers of states of the parents, then of the node
	width     int         // the numbers that a box has in its vectors
	mostBoxes int         // the largest number of boxes that need fewer numbers than a table
	sides     [][]bool    // per parent, which of its states belong to the current box
	terms     [][]float64 // per box, its vectors one behind another: those of the parents, then that of the node
}

// split divides a function of some parents into boxes in which it is constant, and adds these. values has the function's values for all
// combinations of the parents' states, the last parent fastest; dims has the numbers of states of these parents. All parents that are not
// in the list have the states in b.sides. It returns false if there are too many boxes.
func (b *boxes) split(parents, dims, values []int) bool {
	if isConstant(values) {
		return b.addBox(values[0])
	}

	// Fix the parent whose states fall into groups that give the simplest functions of the remaining parents.
	best, bestCost := -1, 0
	var bestGroups [][]int
	for candidate := range parents {
		groups := groupStates(dims, values, candidate)
		cost := groupCost(dims, values, candidate, groups)
		if best < 0 || cost < bestCost {
			best, bestCost, bestGroups = candidate, cost, groups
		}
	}

	// Split the function of the remaining parents, for each group of states of that one.
	parent := parents[best]
	remaining, remainingDims := slices.Delete(slices.Clone(parents), best, best+1), slices.Delete(slices.Clone(dims), best, best+1)
	for _, group := range bestGroups {
		side := make([]bool, b.shape[parent])
		for _, x := range group {
			side[x] = true
		}
		allStates := b.sides[parent]
		b.sides[parent] = side
		ok := b.split(remaining, remainingDims, fixParent(dims, values, best, group[0])) // all states of the group give this function
		b.sides[parent] = allStates
		if !ok {
			return false
		}
	}
	return true
}

// groupCost rates the groups of states of parent k by the functions of the other parents that they give; a smaller cost is better. A
// constant function costs 1, since it is a single box (a product of sets of states on which the function has one value). Any other function
// costs len(values), the most boxes that the whole table could have, so that a single one outweighs all constant ones.
func groupCost(dims, values []int, k int, groups [][]int) (cost int) {
	for _, group := range groups {
		if isConstant(fixParent(dims, values, k, group[0])) {
			cost++
		} else {
			cost += len(values)
		}
	}
	return cost
}

// addBox adds the box of all combinations of parents' states that are in b.sides; in it the node has this state. It returns false if there
// are too many boxes.
func (b *boxes) addBox(state int) bool {
	if len(b.terms) == b.mostBoxes {
		return false
	}
	term := make([]float64, 0, b.width)
	for _, side := range b.sides {
		for _, isIn := range side {
			term = append(term, indicator(isIn))
		}
	}
	for x := range b.shape[len(b.shape)-1] {
		term = append(term, indicator(x == state))
	}
	b.terms = append(b.terms, term)
	return true
}

// indicator returns 1 for true and 0 for false.
func indicator(isIn bool) float64 {
	if isIn {
		return 1
	}
	return 0
}

// isConstant reports whether all values are the same.
func isConstant(values []int) bool {
	return !slices.ContainsFunc(values, func(x int) bool { return x != values[0] })
}

// asCP returns the sum of the boxes, each a term with weight 1 and an indicator vector for each variable.
func (b *boxes) asCP() *tensor.CP {
	t := &tensor.CP{Shape: b.shape, Vectors: make([][]float64, len(b.shape))}
	for _, term := range b.terms {
		t.Weights = append(t.Weights, 1)
		start := 0
		for k, n := range b.shape {
			t.Vectors[k] = append(t.Vectors[k], term[start:start+n]...)
			start += n
		}
	}
	return t
}

// groupStates groups the states of parent k: those of a group give the same function of the other parents. values has
// the function's values, dims the numbers of states, the last parent fastest.
func groupStates(dims, values []int, k int) (groups [][]int) {
	var functions [][]int
	for x := range dims[k] {
		function := fixParent(dims, values, k, x)
		g := slices.IndexFunc(functions, func(existing []int) bool { return slices.Equal(function, existing) })
		if g < 0 {
			g, functions, groups = len(functions), append(functions, function), append(groups, nil)
		}
		groups[g] = append(groups[g], x)
	}
	return groups
}

// fixParent returns the function of the other parents that remains if parent k has state x. values has the values of the
// function of all parents, dims the numbers of states, the last parent fastest.
func fixParent(dims, values []int, k, x int) []int {
	stride := 1
	for _, n := range dims[k+1:] {
		stride *= n
	}
	part := make([]int, 0, len(values)/dims[k])
	for start := x * stride; start < len(values); start += dims[k] * stride {
		part = append(part, values[start:start+stride]...)
	}
	return part
}
