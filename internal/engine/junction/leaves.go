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
	scope  []int
	data   []float64 // without weights
	low    int       // every entry but 0 is 2^low or more
	hosted []int     // variables whose weights are multiplied in
}

// weights are one variable's.
type weights struct {
	without []float64 // evidence
	link    int
	values  []int // those that zeros of the network leave; nil: all
	offset  int   // of its marginals
	dim     int
	leaf    int // that has them; −1 where one value is left: they are a number
	inner   int // entries of the leaf between one value and the next
}

// spanLimit is log2 of the ratio of two entries of a table, or two weights of a variable, up to which a tree is made, or run.
const spanLimit = 500

// addLeaves takes the tables that are no weights. It says no where the entries of one are too far apart, and where one is below 0: terms
// may cancel then, and nobody would count it.
func (t *Tree) addLeaves(apart *lower.Template) bool {
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

// host chooses for the weights of every variable the smallest table that has it; a table of ones where there is none.
func (t *Tree) host(apart *lower.Template) {
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
			host.hosted = append(host.hosted, v)
			w.inner = inner(t.dims, host.scope, i)
		}
		t.weights = append(t.weights, w)
	}
	for _, d := range t.unused() {
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

// inner is the number of entries of a table over a scope between one value of an index and the next.
func inner(dims, scope []int, index int) int {
	entries := 1
	for k := len(scope) - 1; scope[k] != index; k-- {
		entries *= dims[scope[k]]
	}
	return entries
}

// value is the value of the variable that the k-th of its leaf is.
func (w *weights) value(k int) int {
	if w.values != nil {
		return w.values[k]
	}
	return k
}

// under returns the weights that the network has under evidence.
func (w *weights) under(net *btn.Network) []float64 { return lower.WeightsAt(net, w.link) }

// unchanged reports whether a network under evidence has the weights without.
func (w *weights) unchanged(net *btn.Network) bool { return lower.Same(w.under(net), w.without) }
