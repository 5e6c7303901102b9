package contractionorder_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

func TestEvaluateAgainstTheDefinition(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		h := randomHypergraph(r, 1+r.IntN(9), r.IntN(10), 4)
		tree := randomTree(r, len(h.Edges))
		sliced := r.Perm(len(h.Dims))[:r.IntN(len(h.Dims)+1)]
		got, err := contractionorder.EvaluateTree(h, tree, sliced)
		if err != nil {
			t.Fatal(err)
		}
		if want := recount(h, tree, sliced); !sameCost(got, want) {
			t.Fatalf("seed %d, %+v, %+v, slices %v:\n%+v, recounted %+v",
				seed, h, tree, sliced, got, want)
		}
	}
}

func TestScopesEndEmpty(t *testing.T) {
	h := contractionorder.Hypergraph{Dims: []int{2, 3, 5, 1},
		Edges: [][]int{{0, 1, 3}, {1, 2}, {2, 0}, {2}}}
	tree, err := contractionorder.NewTree(4, [][2]int{{0, 1}, {2, 3}, {4, 5}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := contractionorder.Scopes(h, tree, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := [][]int{{0, 1}, {1, 2}, {0, 2}, {2}, {0, 2}, {0, 2},
		{}}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("scopes %v, want %v", got, want)
	}
}

// peakOf prices a sequence of merges by Evaluate alone.
func peakOf(t *testing.T, h contractionorder.Hypergraph, tree contractionorder.Tree) float64 {
	t.Helper()
	c, err := contractionorder.EvaluateTree(h, tree, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.PeakBytes
}

// depthFirst lists every depth-first execution of a tree.
func depthFirst(tree contractionorder.Tree) []contractionorder.Tree {
	var all []contractionorder.Tree
	for choice := range 1 << len(tree.Merges) {
		out := contractionorder.Tree{Leaves: tree.Leaves}
		var visit func(v int) int
		visit = func(v int) int {
			if v < tree.Leaves {
				return v
			}
			m := tree.Merges[v-tree.Leaves]
			if choice>>(v-tree.Leaves)&1 != 0 {
				m[0], m[1] = m[1], m[0]
			}
			a := visit(m[0])
			b := visit(m[1])
			out.Merges = append(out.Merges, [2]int{a, b})
			return tree.Leaves + len(out.Merges) - 1
		}
		visit(tree.Leaves + len(tree.Merges) - 1)
		all = append(all, out)
	}
	return all
}

func TestScheduleIsTheBestDepthFirstExecution(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		h := randomHypergraph(r, 8, 2+r.IntN(6), 4)
		tree := randomTree(r, len(h.Edges))
		best := math.Inf(1)
		for _, other := range depthFirst(tree) {
			best = min(best, peakOf(t, h, other))
		}
		s, err := contractionorder.Schedule(h, tree, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := peakOf(t, h, s); got != best {
			t.Errorf("seed %d: scheduled peak %v, the best of all is %v", seed, got, best)
		}
		if !slices.Equal(s.Canonical().Merges, tree.Canonical().Merges) {
			t.Errorf("seed %d: scheduling changed the tree", seed)
		}
	}
}

func TestCanonicalFormForgetsTheExecution(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		tree := randomTree(r, 2+r.IntN(6))
		want := tree.Canonical()
		for _, other := range depthFirst(tree) {
			if err := other.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := other.Canonical(); !slices.Equal(got.Merges, want.Merges) {
				t.Fatalf("seed %d: canonical forms %v and %v of one tree", seed, got, want)
			}
		}
	}
}

// TestHugeNetworks prices trees whose tables have 2^1500 entries: nothing overflows to Inf or NaN.
func TestHugeNetworks(t *testing.T) {
	h := contractionorder.Hypergraph{}
	for i := range 1500 {
		h.Dims = append(h.Dims, 2)
		h.Edges = append(h.Edges, []int{i}, []int{i})
	}
	tree := contractionorder.Tree{Leaves: len(h.Edges)}
	last := 0
	for i := range 1499 { // all first halves, then all second halves
		tree.Merges = append(tree.Merges, [2]int{last, 2 * (i + 1)})
		last = len(h.Edges) + i
	}
	for i := range 1500 {
		tree.Merges = append(tree.Merges, [2]int{last, 2*i + 1})
		last = len(h.Edges) + len(tree.Merges) - 1
	}
	c, err := contractionorder.EvaluateTree(h, tree, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Log2Table != 1500 || c.Flops != math.MaxFloat64 || c.PeakBytes != math.MaxFloat64 ||
		c.Width != 1499 {
		t.Errorf("cost %+v", c)
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	h := contractionorder.Hypergraph{Dims: []int{2, 2}, Edges: [][]int{{0, 1}, {1}, {0}}}
	good := [][2]int{{0, 1}, {2, 3}}
	for _, c := range []struct {
		h      contractionorder.Hypergraph
		tree   contractionorder.Tree
		sliced []int
		want   string
	}{
		{h, contractionorder.Tree{Leaves: 3, Merges: good[:1]}, nil, "3 tensors and 1 merges"},
		{h, contractionorder.Tree{Leaves: 3, Merges: [][2]int{{0, 1}, {2, 4}}}, nil,
			"merge 1 names table 4"},
		{h, contractionorder.Tree{Leaves: 3, Merges: [][2]int{{0, -1}, {2, 3}}}, nil,
			"merge 0 names table -1"},
		{h, contractionorder.Tree{Leaves: 3, Merges: [][2]int{{0, 0}, {2, 3}}}, nil,
			"merge 0 names table 0, which is consumed"},
		{h, contractionorder.Tree{Leaves: 2, Merges: [][2]int{{0, 1}}}, nil,
			"2 leaves, the network has 3"},
		{h, contractionorder.Tree{Leaves: -1}, nil, "-1 tensors"},
		{h, contractionorder.Tree{Leaves: 3, Merges: good}, []int{2}, "index 2"},
		{h, contractionorder.Tree{Leaves: 3, Merges: good}, []int{1, 1}, "index 1"},
		{contractionorder.Hypergraph{Dims: []int{0}, Edges: [][]int{{0}}},
			contractionorder.Tree{Leaves: 1}, nil, "index 0 has dimension 0"},
		{contractionorder.Hypergraph{Dims: []int{2}, Edges: [][]int{{0, 0}}},
			contractionorder.Tree{Leaves: 1}, nil, "tensor 0 names index 0"},
		{contractionorder.Hypergraph{Dims: []int{2}, Edges: [][]int{{}, {1}}},
			contractionorder.Tree{Leaves: 2,
				Merges: [][2]int{{0, 1}}}, nil, "tensor 1 names index 1"},
	} {
		_, err := contractionorder.EvaluateTree(c.h, c.tree, c.sliced)
		if !errors.Is(err, contractionorder.ErrTree) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c, err, c.want)
		}
		if _, other := contractionorder.Schedule(c.h, c.tree, c.sliced); !errors.Is(other,
			contractionorder.ErrTree) {
			t.Errorf("%+v: scheduled, %v", c, other)
		}
	}
}

// cliquesOf eliminates indices one by one from scopes as sets.
func cliquesOf(h contractionorder.Hypergraph, order []int) []map[int]bool {
	var live []map[int]bool
	for _, e := range h.Edges {
		s := map[int]bool{}
		for _, v := range e {
			if h.Dims[v] > 1 {
				s[v] = true
			}
		}
		live = append(live, s)
	}
	var cliques []map[int]bool
	for _, v := range order {
		clique := map[int]bool{}
		live = slices.DeleteFunc(live, func(s map[int]bool) bool {
			if !s[v] {
				return false
			}
			for u := range s {
				clique[u] = true
			}
			return true
		})
		out := map[int]bool{}
		for u := range clique {
			if u != v {
				out[u] = true
			}
		}
		cliques = append(cliques, clique)
		live = append(live, out)
	}
	return cliques
}

// TestFromOrderStaysInTheCliques:
// no merge of an order's tree touches indices that the elimination does not bring together.
func TestFromOrderStaysInTheCliques(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 4))
		h := randomHypergraph(r, 1+r.IntN(12), r.IntN(20), 3)
		order := r.Perm(len(h.Dims))
		tree, err := contractionorder.FromOrder(h, order)
		if err != nil {
			t.Fatal(err)
		}
		scopes, err := contractionorder.Scopes(h, tree, nil)
		if err != nil {
			t.Fatal(err)
		}
		cliques := cliquesOf(h, order)
		for k, m := range tree.Merges {
			both := slices.Concat(scopes[m[0]], scopes[m[1]])
			inside := func(c map[int]bool) bool {
				return !slices.ContainsFunc(both, func(v int) bool { return !c[v] })
			}
			if len(both) > 0 && !slices.ContainsFunc(cliques, inside) {
				t.Fatalf("seed %d, %+v along %v: merge %d touches %v", seed, h, order, k, both)
			}
		}
	}
}
