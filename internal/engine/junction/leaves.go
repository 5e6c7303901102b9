package junction

// The leaves of a tree: tables of the network. The weights of a variable are multiplied into one of the tables that have it.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// leaf is a table of the network.
type leaf struct {
	scope    []int     // its indices
	data     []float64 // its entries, without weights; the last index varies fastest
	low      int       // every entry but 0 is 2^low or more
	weighted []int     // the variables whose weights are multiplied into the leaf
}

// weights say where the weights of one variable are, and which entries of which leaf they are multiplied into.
type weights struct {
	evidenceFree []float64 // the weights without evidence, by value of the variable
	link         int       // the link of the network that has the weights
	values       []int     // by value of the leaf's index: the value of the variable; nil if they are the same
	offset       int       // where its marginals begin in Query.Marginals
	dim          int       // the number of values that the zeros of the network do not exclude
	leaf         int       // the leaf that the weights are multiplied into; −1 if dim is 1: the weight is a factor of Z
	stride       int       // the distance between the leaf's entries of neighbouring values
}

// spanLimit is log2 of the ratio of two entries of a table, or two weights of a variable, up to which a tree is made, or run.
const spanLimit = 500

// addLeaves makes a leaf of each table of the template; a table without indices is a factor of t.scale instead. Each leaf is divided by a
// power of two, which goes into t.scale.
//
// ok is false if a table has an entry that is not finite, if its entries are too far apart, or if one is below 0: then terms may cancel,
// and a run would not notice it.
func (t *Tree) addLeaves(template *lower.Template) (ok bool) {
	for _, table := range template.Tables {
		data := table.Data
		top, low, hasNegative := floats.Extent(data) // exponents of the largest entry and of the smallest but 0
		isFinite := top < 1024                       // Extent returns 1024 if an entry is infinite or NaN
		if hasNegative || !isFinite || top-low > spanLimit {
			return false
		}
		divisor := floats.Normalise(data)
		t.scale = t.scale.Mul(divisor)
		if len(table.Scope) == 0 {
			t.scale = t.scale.Mul(scaled.FromFloat(data[0]))
			continue
		}
		t.leaves = append(t.leaves, leaf{scope: table.Scope, data: data, low: low - int(divisor.Exp)})
	}
	return true
}

// placeWeights chooses the leaf that the weights of each variable are multiplied into: the smallest that has the variable's index. If no
// leaf has it, a leaf of ones is added. A variable with one value has no leaf. An index that no leaf has in the end is summed out of Z by
// a factor in t.scale.
func (t *Tree) placeWeights(template *lower.Template) {
	smallest := slices.Repeat([]int{-1}, len(t.dims)) // by index: the smallest leaf that has it
	for k, leaf := range t.leaves {
		for _, i := range leaf.scope {
			if smallest[i] < 0 || len(leaf.data) < len(t.leaves[smallest[i]].data) {
				smallest[i] = k
			}
		}
	}
	offset := 0
	for v, variable := range template.Weights {
		i := variable.Index
		w := weights{
			evidenceFree: variable.WithoutEvidence, link: variable.Link, values: variable.Values, offset: offset, dim: t.dims[i], leaf: -1,
		}
		offset += len(variable.WithoutEvidence)
		if w.dim > 1 {
			if smallest[i] < 0 { // no leaf has the index
				smallest[i] = len(t.leaves)
				t.leaves = append(t.leaves, leaf{scope: []int{i}, data: slices.Repeat([]float64{1}, w.dim)})
			}
			w.leaf = smallest[i]
			host := &t.leaves[w.leaf]
			host.weighted = append(host.weighted, v)
			w.stride = strideOf(t.dims, host.scope, i)
		}
		t.weights = append(t.weights, w)
	}
	for _, d := range t.unusedDims() { // the sum of ones over such an index
		t.scale = t.scale.Mul(scaled.FromFloat(float64(d)))
	}
}

// unusedDims lists the dimensions of the indices that no leaf has.
func (t *Tree) unusedDims() (list []int) {
	used := make([]bool, len(t.dims))
	for _, leaf := range t.leaves {
		for _, i := range leaf.scope {
			used[i] = true
		}
	}
	for i, d := range t.dims {
		if !used[i] {
			list = append(list, d)
		}
	}
	return list
}

// strideOf returns the distance between the entries of neighbouring values of an index in a table over scope, whose last index varies
// fastest: the product of the dimensions of the indices after it. scope has the index.
func strideOf(dims, scope []int, index int) int {
	stride := 1
	for k := len(scope) - 1; scope[k] != index; k-- {
		stride *= dims[scope[k]]
	}
	return stride
}

// variableValue returns the value of the variable for which value k of the leaf's index stands. They differ if the network's zeros exclude
// values.
func (w *weights) variableValue(k int) int {
	if w.values != nil {
		return w.values[k]
	}
	return k
}

// in returns the variable's weights in a network with evidence.
func (w *weights) in(net *btn.Network) []float64 { return lower.LinkWeights(net, w.link) }

// isChangedBy reports whether the evidence in a network concerns the variable. If it does not, the network shares the slice of weights
// without evidence.
func (w *weights) isChangedBy(net *btn.Network) bool {
	return !lower.SharesMemory(w.in(net), w.evidenceFree)
}
