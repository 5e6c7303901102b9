package contractionorder_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/testing/orders"
)

// TestWalkIsAContraction: for every order, each tensor is used once, every index is summed once and
// only when no other live table has it, outputs are the union less the summed indices, in the
// sequence of the order, and costs follow from the scopes alone.
func TestWalkIsAContraction(t *testing.T) {
	const seed = 6
	rng := rand.New(rand.NewPCG(seed, 6))
	for round := range 450 {
		h := random(rng, 1+rng.IntN(12), rng.IntN(25))
		order := contractionorder.RestrictOrder(rng.Perm(len(h.Dims)), h)
		live := map[int][]int{}
		entries, peak, flops := 0.0, 0.0, 0.0
		sizes := map[int]float64{}
		for id, e := range h.Edges {
			live[id] = kept(h, e)
			entries += size(h, live[id])
		}
		peak = entries
		next := len(h.Edges)
		summed := map[int]bool{}
		plain := round%3 == 0
		walk := contractionorder.Walk
		if plain {
			walk = contractionorder.WalkPlainly
		}
		walk(t.Context(), h, order, func(s *contractionorder.Step) bool {
			if plain && (len(s.Sum) != 1 || !slices.IsSorted(s.In)) {
				t.Fatalf("seed %d, round %d: plain step %+v", seed, round, s)
			}
			var scope []int
			for _, in := range s.In {
				if _, ok := live[in]; !ok {
					t.Fatalf("seed %d, round %d: step %v uses table %d, which is gone",
						seed, round, s, in)
				}
				for _, v := range live[in] {
					if !slices.Contains(scope, v) {
						scope = append(scope, v)
					}
				}
				delete(live, in)
			}
			slices.SortFunc(scope,
				func(a, b int) int { return slices.Index(order, a) - slices.Index(order, b) })
			if !slices.Equal(scope, append(slices.Clone(s.Sum), s.Out...)) {
				t.Fatalf("seed %d, round %d: step %+v over %v", seed, round, s, scope)
			}
			for _, v := range s.Sum {
				summed[v] = true
				for id, other := range live {
					if slices.Contains(other, v) {
						t.Fatalf("seed %d, round %d: %d summed while table %d has it",
							seed, round, v, id)
					}
				}
			}
			full, out := size(h, scope), size(h, s.Out)
			if s.FullSize != full || s.Size != out {
				t.Fatalf("seed %d, round %d: step %+v has sizes %v and %v",
					seed, round, s, full, out)
			}
			flops += float64(len(s.In)-1)*full + full - out
			entries += out
			peak = max(peak, entries)
			for _, in := range s.In {
				entries -= sizes[in]
			}
			sizes[next] = out
			live[next] = s.Out
			next++
			return true
		})
		for id, scope := range live {
			if len(scope) > 0 {
				t.Fatalf("seed %d, round %d: table %d is left with %v", seed, round, id, scope)
			}
		}
		for _, e := range h.Edges {
			for _, v := range kept(h, e) {
				if !summed[v] {
					t.Fatalf("seed %d, round %d: %d is not summed", seed, round, v)
				}
			}
		}
		if plain {
			continue
		}
		plan := orders.Evaluate(h, order)
		if math.Abs(plan.Flops-flops) > 1e-9*flops || plan.Bytes != 8*peak {
			t.Fatalf("seed %d, round %d: plan %+v, walked %v flops and %v bytes",
				seed, round, plan, flops, 8*peak)
		}
	}
}

func kept(h contractionorder.Hypergraph, e []int) (out []int) {
	for _, v := range e {
		if h.Dims[v] > 1 {
			out = append(out, v)
		}
	}
	return out
}

func size(h contractionorder.Hypergraph, scope []int) float64 {
	s := 1.0
	for _, v := range scope {
		s *= float64(h.Dims[v])
	}
	return s
}

// TestReach: every table made of a marked one, through any number of steps, is marked.
func TestReach(t *testing.T) {
	steps := []*contractionorder.Step{{In: []int{0, 1}}, {In: []int{2}}, {In: []int{4, 3}}, {In: []int{5}}}
	got := contractionorder.MarkOutputs([]bool{false, false, true}, steps)
	if want := []bool{false, false, true, false, true, true, true}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestWalkStops: yield ends the walk.
func TestWalkStops(t *testing.T) {
	steps := 0
	contractionorder.Walk(t.Context(), chain(100), orders.MinFill(chain(100)),
		func(*contractionorder.Step) bool { steps++; return steps < 7 })
	if steps != 7 {
		t.Errorf("%d steps, want 7", steps)
	}
}

// TestTablesOfOneScopeDoNotPileUp: eliminating one side of a dense bipartite
// graph leaves one table over the other side, not one per variable eliminated.
func TestTablesOfOneScopeDoNotPileUp(t *testing.T) {
	const n = 15
	h := contractionorder.Hypergraph{Dims: slices.Repeat([]int{2}, 2*n)}
	for i := range n {
		for j := range n {
			h.Edges = append(h.Edges, []int{i, n + j})
		}
	}
	plan := orders.Evaluate(h, orders.MinFill(h))
	if table := 8 * float64(int(1)<<n); plan.Width != n || plan.Bytes > 3.2*table {
		t.Errorf("width %d, %v bytes, a table of one side has %v", plan.Width, plan.Bytes, table)
	}
}
