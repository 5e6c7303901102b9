package contractionorder_test

// An independent recount of the cost of trees: scopes as sets of leaves' indices,
// from the definition and without any bookkeeping.

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// randomHypergraph has up to n indices of mixed dimensions, 1 among them, in tensors of up to
// arity indices, indices in any number of tensors, none included, and tensors without indices.
func randomHypergraph(r *rand.Rand, n, tensors, arity int) contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{}
	for range n {
		h.Dims = append(h.Dims, []int{1, 2, 2, 2, 3, 4, 7}[r.IntN(7)])
	}
	for range tensors {
		e := append([]int(nil), r.Perm(n)[:r.IntN(min(arity, n)+1)]...)
		h.Edges = append(h.Edges, e)
	}
	return h
}

// grid has one index per site and a tensor per neighbouring pair and per site.
func grid(rows, columns, dim int) contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{}
	for i := range rows * columns {
		h.Dims = append(h.Dims, dim)
		h.Edges = append(h.Edges, []int{i})
		if i%columns+1 < columns {
			h.Edges = append(h.Edges, []int{i, i + 1})
		}
		if i+columns < rows*columns {
			h.Edges = append(h.Edges, []int{i, i + columns})
		}
	}
	return h
}

// randomTree merges random pairs.
func randomTree(r *rand.Rand, leaves int) contractionorder.Tree {
	t := contractionorder.Tree{Leaves: leaves}
	var live []int
	for i := range leaves {
		live = append(live, i)
	}
	for len(live) > 1 {
		r.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
		t.Merges = append(t.Merges, [2]int{live[0], live[1]})
		live = append(live[2:], leaves+len(t.Merges)-1)
	}
	return t
}

// recount prices a tree from the definition.
func recount(
	h contractionorder.Hypergraph, t contractionorder.Tree, sliced []int,
) contractionorder.Cost {
	dim := append([]int(nil), h.Dims...)
	c := contractionorder.Cost{Slices: 1}
	for _, v := range sliced {
		c.Slices *= float64(h.Dims[v])
		dim[v] = 1
	}
	under := map[int]map[int]bool{} // table → leaves
	for i := range h.Edges {
		under[i] = map[int]bool{i: true}
	}
	// has says whether an index is in a tensor of table v (inside) or in one of all others.
	has := func(v, index int, inside bool) bool {
		for i, e := range h.Edges {
			if under[v][i] == inside {
				for _, x := range e {
					if x == index {
						return true
					}
				}
			}
		}
		return false
	}
	open := func(v, index int) bool {
		return dim[index] > 1 && has(v, index, true) && has(v, index, false)
	}
	size := func(in func(index int) bool) (float64, int) {
		p, n := 1.0, 0
		for index, d := range dim {
			if d > 1 && in(index) {
				p *= float64(d)
				n++
			}
		}
		return p, n
	}
	copied := make([]float64, len(h.Edges)+len(t.Merges))
	live := 0.0
	for i, e := range h.Edges {
		whole := 1.0
		for _, v := range e {
			whole *= float64(h.Dims[v])
		}
		live += whole
		read, _ := size(func(x int) bool { return has(i, x, true) })
		kept, _ := size(func(x int) bool { return open(i, x) })
		c.SliceFlops += read - kept
		if read != whole || kept != read {
			copied[i] = kept
		}
	}
	c.PeakBytes = 8 * live
	sizes := map[int]float64{}
	for k, m := range t.Merges {
		v := t.Leaves + k
		full, n := size(func(x int) bool { return open(m[0], x) || open(m[1], x) })
		under[v] = map[int]bool{}
		for _, i := range m {
			for leaf := range under[i] {
				under[v][leaf] = true
			}
		}
		out, _ := size(func(x int) bool { return open(v, x) })
		c.Width = max(c.Width, n-1)
		c.SliceFlops += 2*full - out
		c.Writes += out
		c.Log2Table = max(c.Log2Table, math.Log2(out))
		live += out
		c.PeakBytes = max(c.PeakBytes, 8*(live+copied[m[0]]+copied[m[1]]))
		sizes[v] = out
		live -= sizes[m[0]] + sizes[m[1]]
	}
	c.Flops = c.SliceFlops * c.Slices
	return c
}

// sameCost allows for the rounding of logarithms; everything else is exact on networks this small.
func sameCost(a, b contractionorder.Cost) bool {
	d := math.Abs(a.Log2Table - b.Log2Table)
	a.Log2Table, b.Log2Table = 0, 0
	return a == b && d < 1e-9
}

// checkPlan recounts a plan.
func checkPlan(t *testing.T, h contractionorder.Hypergraph, p contractionorder.Plan) {
	t.Helper()
	if err := p.Tree.Validate(); err != nil {
		t.Fatal(err)
	}
	cost, err := contractionorder.EvaluateTree(h, p.Tree, p.Slices)
	if err != nil {
		t.Fatal(err)
	}
	if cost != p.Cost {
		t.Fatalf("the plan says %+v, its evaluation %+v", p.Cost, cost)
	}
	if len(h.Edges) < 60 && cost.Flops < 1e15 {
		if want := recount(h, p.Tree, p.Slices); !sameCost(cost, want) {
			t.Fatalf("cost %+v, recounted %+v", cost, want)
		}
	}
}
