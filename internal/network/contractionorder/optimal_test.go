package contractionorder

import (
	"math"
	"math/rand/v2"
	"testing"
)

var testObjectives = map[string]objective{
	"flops":   {log2Write: -noLimit, limit: noLimit},
	"writes":  {log2Write: 4 * oneBit, limit: noLimit},
	"penalty": {log2Write: 4 * oneBit, limit: 3 * oneBit, steepness: oneBit},
}

// someHypergraph has mixed dimensions and indices in any number of tensors.
func someHypergraph(r *rand.Rand, n, tensors, arity int) Hypergraph {
	h := Hypergraph{}
	for range n {
		h.Dims = append(h.Dims, []int{2, 2, 2, 3, 5}[r.IntN(5)])
	}
	for range tensors {
		h.Edges = append(h.Edges, r.Perm(n)[:1+r.IntN(min(arity, n))])
	}
	return h
}

// allTrees calls yield for the merges of every binary tree over the given tables, each tree once:
// the table with the smallest number is joined last to any of the trees of the others, at every
// edge.
func allTrees(leaves int, yield func(merges [][2]int)) (count int) {
	// A tree as nested pairs; insertion of the next leaf above any node.
	type node struct {
		leaf int
		a, b *node
	}
	var list func(n *node, merges *[][2]int) int
	list = func(n *node, merges *[][2]int) int {
		if n.a == nil {
			return n.leaf
		}
		x := list(n.a, merges)
		y := list(n.b, merges)
		*merges = append(*merges, [2]int{x, y})
		return leaves + len(*merges) - 1
	}
	root := &node{leaf: 0}
	var insert func(next int)
	insert = func(next int) {
		if next == leaves {
			var merges [][2]int
			list(root, &merges)
			count++
			yield(merges)
			return
		}
		var everywhere func(at **node)
		everywhere = func(at **node) {
			old := *at
			*at = &node{a: old, b: &node{leaf: next}}
			insert(next + 1)
			*at = old
			if old.a != nil {
				everywhere(&old.a)
				everywhere(&old.b)
			}
		}
		everywhere(&root)
	}
	insert(1)
	return count
}

// TestOptimalAgainstAllTrees:
// the dynamic programme finds the cheapest of all (2n−3)!! binary trees.
func TestOptimalAgainstAllTrees(t *testing.T) {
	doubleFactorial := map[int]int{2: 1, 3: 3, 4: 15, 5: 105, 6: 945, 7: 10395}
	for name, o := range testObjectives {
		for seed := range uint64(12) {
			r := rand.New(rand.NewPCG(seed, 5))
			leaves := 3 + int(seed)%4
			if seed == 0 && !testing.Short() {
				leaves = 7
			}
			h := someHypergraph(r, 3+r.IntN(7), leaves, 4)
			n := newSlicedNetwork(h, nil)
			best := math.Inf(1)
			count := allTrees(leaves, func(merges [][2]int) {
				best = min(best, newWorkingTree(n, merges).totalPrice(&o, 0))
			})
			if count != doubleFactorial[leaves] {
				t.Fatalf("%d trees over %d leaves, want (2n−3)!! = %d",
					count, leaves, doubleFactorial[leaves])
			}
			w := newWorkingTree(n, chainOf(leaves))
			newReconfigurer(w, o, leaves).run(noLimit)
			if got := w.totalPrice(&o, 0); math.Abs(got/best-1) > 1e-5 {
				t.Errorf("%s, seed %d: %v, the cheapest of all %d trees costs %v",
					name, seed, got, count, best)
			}
			checkWorking(t, w)
		}
	}
}

// TestOptimalPredictsItsCost: the dynamic programme's cost is the cost of the tree it builds,
// for tables beyond the range of float64 too.
func TestOptimalPredictsItsCost(t *testing.T) {
	for name, o := range testObjectives {
		for seed := range uint64(30) {
			r := rand.New(rand.NewPCG(seed, 6))
			h := someHypergraph(r, 6, 8, 3)
			if seed%3 == 2 {
				for i := range h.Dims {
					h.Dims[i] = 1 << 40
				}
			}
			w := newWorkingTree(newSlicedNetwork(h, nil), chainOf(8))
			rec := newReconfigurer(w, o, 8)
			rec.collectPiece(w.root)
			rec.enterIndices(w.root)
			predicted, base := rec.optimal.solve(&o)
			rec.rebuildPiece(w.root)
			if got := w.totalPrice(&o, base); math.Abs(got/predicted-1) > 1e-5 {
				t.Errorf("%s, seed %d: %v predicted, %v built", name, seed, predicted, got)
			}
			checkWorking(t, w)
		}
	}
}

// chainOf merges tables one after the other.
func chainOf(leaves int) [][2]int {
	var merges [][2]int
	last := 0
	for i := 1; i < leaves; i++ {
		merges = append(merges, [2]int{last, i})
		last = leaves + i - 1
	}
	return merges
}

// checkWorking compares every scope, size and union of w with the same tree's after a rebuild,
// and the tree's links with each other.
func checkWorking(t *testing.T, w *workingTree) {
	t.Helper()
	merges := w.merges()
	tree, err := NewTree(w.leafCount(), merges)
	if err != nil {
		t.Fatal(err)
	}
	if w.parent[w.root] != none {
		t.Fatal("the root has a parent")
	}
	fresh := newWorkingTree(w.network, merges)
	for k, v := range inner(w) {
		f := int32(tree.Leaves + k)
		for i := range w.scopeOf(v) {
			if w.scopeOf(v)[i] != fresh.scopeOf(f)[i] {
				t.Fatalf("scope of node %d is %x, recounted %x", v, w.scopeOf(v), fresh.scopeOf(f))
			}
		}
		if w.size[v] != fresh.size[f] || w.unionSize[v] != fresh.unionSize[f] {
			t.Fatalf("node %d: sizes %v and %v, recounted %v and %v",
				v, w.size[v], w.unionSize[v], fresh.size[f], fresh.unionSize[f])
		}
		if w.parent[w.left[v]] != v || w.parent[w.right[v]] != v {
			t.Fatalf("node %d is not the parent of its children", v)
		}
	}
}

// inner lists the merges of w in postorder.
func inner(w *workingTree) []int32 {
	var out []int32
	for _, v := range w.postorder() {
		if w.left[v] != none {
			out = append(out, v)
		}
	}
	return out
}
