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
	scope    []int
	data     []float64 // without weights
	low      int       // every entry but 0 is 2^low or more
	weighted []int     // the variables whose weights are multiplied into the leaf
}

// weights are where the weights of one variable are.
type weights struct {
	without []float64 // the weights without evidence
	link    int       // of the network, which has the weights
	values  []int     // the values that zeros of the network leave; nil: all
	offset  int       // of its marginals in Query.Marginals
	dim     int       // number of values left
	leaf    int       // that the weights are multiplied into; −1 if one value is left: its weight is a factor of Z
	stride  int       // distance between the leaf's entries of neighbouring values
}

// spanLimit is log2 of the ratio of two entries of a table, or two weights of a variable, up to which a tree is made, or run.
const spanLimit = 500

// addLeaves makes leaves of the tables that are no weights. ok is false if the entries of a table are too far apart, or if one is below 0:
// then terms may cancel, and a run would not notice it.
func (t *Tree) addLeaves(apart *lower.Template) (ok bool) {
	for _, table := range apart.Tables {
		data := table.Data
		top, low, negative := floats.Extent(data)
		if negative || top >= 1024 || top-low > spanLimit {
			return false
		}
		n := floats.Normalise(data)
		t.scale = t.scale.Mul(n)
		if len(table.Scope) == 0 {
			t.scale = t.scale.Mul(scaled.FromFloat(data[0]))
			continue
		}
		t.leaves = append(t.leaves, leaf{scope: table.Scope, data: data, low: low - int(n.Exp)})
	}
	return true
}

// placeWeights chooses, for the weights of every variable, the smallest leaf that has the variable. If there is none, it adds a leaf of
// ones.
func (t *Tree) placeWeights(apart *lower.Template) {
	smallest := slices.Repeat([]int{-1}, len(t.dims))
	for k, leaf := range t.leaves {
		for _, i := range leaf.scope {
			if smallest[i] < 0 || len(leaf.data) < len(t.leaves[smallest[i]].data) {
				smallest[i] = k
			}
		}
	}
	offset := 0
	for v, variable := range apart.Weights {
		i := variable.Index
		w := weights{
			without: variable.Own, link: variable.Link, values: variable.Values, offset: offset, dim: t.dims[i], leaf: -1,
		}
		offset += len(variable.Own)
		if w.dim > 1 {
			if smallest[i] < 0 {
				smallest[i] = len(t.leaves)
				t.leaves = append(t.leaves, leaf{scope: []int{i}, data: slices.Repeat([]float64{1}, w.dim)})
			}
			w.leaf = smallest[i]
			host := &t.leaves[w.leaf]
			host.weighted = append(host.weighted, v)
			w.stride = stride(t.dims, host.scope, i)
		}
		t.weights = append(t.weights, w)
	}
	for _, d := range t.unused() { // the sum over such an index is its dimension
		t.scale = t.scale.Mul(scaled.FromFloat(float64(d)))
	}
}

// unused lists the dimensions of the indices that no table has.
func (t *Tree) unused() (list []int) {
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

// stride returns the distance between the entries of neighbouring values of an index in a table over a scope that has it.
func stride(dims, scope []int, index int) int {
	distance := 1
	for k := len(scope) - 1; scope[k] != index; k-- {
		distance *= dims[scope[k]]
	}
	return distance
}

// value returns the value of the variable that value k of the leaf's index stands for.
func (w *weights) value(k int) int {
	if w.values != nil {
		return w.values[k]
	}
	return k
}

// under returns the weights that the network has under evidence.
func (w *weights) under(net *btn.Network) []float64 { return lower.WeightsAt(net, w.link) }

// equalsEvidenceFree reports whether a network under evidence has the same weights as without evidence.
func (w *weights) equalsEvidenceFree(net *btn.Network) bool {
	return lower.Same(w.under(net), w.without)
}
