package contractionorder_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/fault"
)

func search(
	t testing.TB, h contractionorder.Hypergraph, o contractionorder.Options,
) contractionorder.Plan {
	t.Helper()
	p, err := contractionorder.Search(context.Background(), h, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// value contracts tensors with random entries along a plan, slice by slice, entry by entry.
func value(
	t *testing.T, h contractionorder.Hypergraph, p contractionorder.Plan, entry func(tensor int,
		x []int) float64,
) float64 {
	t.Helper()
	scopes, err := contractionorder.Scopes(h, p.Tree, p.Slices)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]int, len(h.Dims))
	var sum func(over []int, f func() float64) float64
	sum = func(over []int, f func() float64) float64 {
		if len(over) == 0 {
			return f()
		}
		s := 0.0
		for x[over[0]] = range h.Dims[over[0]] {
			s += sum(over[1:], f)
		}
		x[over[0]] = 0
		return s
	}
	sliced := map[int]bool{}
	for _, v := range p.Slices {
		sliced[v] = true
	}
	return sum(p.Slices, func() float64 {
		tables := make([]map[string]float64, len(scopes))
		at := func(i int) string {
			key := ""
			for _, v := range scopes[i] {
				key += fmt.Sprint(x[v], " ")
			}
			return key
		}
		fill := func(i int, closed []int, f func() float64) {
			tables[i] = map[string]float64{}
			sum(scopes[i], func() float64 {
				saved := append([]int(nil), x...)
				tables[i][at(i)] = sum(closed, f)
				copy(x, saved)
				return 0
			})
		}
		in := func(list []int, v int) bool {
			for _, u := range list {
				if u == v {
					return true
				}
			}
			return false
		}
		for i, e := range h.Edges {
			var closed []int
			for _, v := range e {
				if !in(scopes[i], v) && !sliced[v] {
					closed = append(closed, v)
				}
			}
			fill(i, closed, func() float64 { return entry(i, x) })
		}
		for k, m := range p.Tree.Merges {
			i := p.Tree.Leaves + k
			var closed []int
			for _, v := range append(append([]int(nil), scopes[m[0]]...), scopes[m[1]]...) {
				if !in(scopes[i], v) && !in(closed, v) {
					closed = append(closed, v)
				}
			}
			fill(i, closed, func() float64 {
				return tables[m[0]][at(m[0])] * tables[m[1]][at(m[1])]
			})
		}
		return tables[len(tables)-1][""]
	})
}

// completeGraph has a tensor for every pair of indices.
func completeGraph(r *rand.Rand, n int) contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{}
	for i := range n {
		h.Dims = append(h.Dims, 2+r.IntN(2))
		for j := range i {
			h.Edges = append(h.Edges, []int{j, i})
		}
	}
	return h
}

// inputBytes is the memory of a network's tensors.
func inputBytes(h contractionorder.Hypergraph) float64 {
	sum := 0.0
	for _, e := range h.Edges {
		size := 8.0
		for _, v := range e {
			size *= float64(h.Dims[v])
		}
		sum += size
	}
	return sum
}

// TestPlansContractToTheSum:
// a plan followed literally, sliced or not, gives the sum over all indices.
func TestPlansContractToTheSum(t *testing.T) {
	sliced := 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 20))
		h := randomHypergraph(r, 2+r.IntN(6), 1+r.IntN(8), 3)
		if seed%3 == 0 {
			h = completeGraph(r, 6)
		}
		inScope := make([]bool, len(h.Dims))
		for _, e := range h.Edges {
			for _, v := range e {
				inScope[v] = true
			}
		}
		for v := range h.Dims {
			if !inScope[v] {
				h.Dims[v] = 1
			}
		}
		entry := func(tensor int, x []int) float64 {
			hash := uint64(tensor + 1)
			for _, v := range h.Edges[tensor] {
				hash = hash*31 + uint64(x[v])
			}
			return rand.New(rand.NewPCG(hash, seed)).Float64()
		}
		want := 0.0
		x := make([]int, len(h.Dims))
		var all func(v int)
		all = func(v int) {
			if v == len(x) {
				p := 1.0
				for i := range h.Edges {
					p *= entry(i, x)
				}
				want += p
				return
			}
			for x[v] = range h.Dims[v] {
				all(v + 1)
			}
			x[v] = 0
		}
		all(0)
		p := search(t, h, contractionorder.Options{Seed: seed})
		checkPlan(t, h, p)
		if got := value(t, h, p, entry); math.Abs(got/want-1) > 1e-9 {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
		small, err := contractionorder.Search(context.Background(), h, contractionorder.Options{
			Seed:   seed,
			Memory: int64(inputBytes(h)+p.Cost.PeakBytes) / 2,
		})
		checkPlan(t, h, small)
		if err != nil && !errors.Is(err, contractionorder.ErrMemory) {
			t.Fatal(err)
		}
		if len(small.Slices) > 0 {
			sliced++
		}
		if got := value(t, h, small, entry); math.Abs(got/want-1) > 1e-9 {
			t.Fatalf("seed %d: %v with slices %v, want %v", seed, got, small.Slices, want)
		}
	}
	if sliced < 10 {
		t.Errorf("only %d plans were sliced", sliced)
	}
}

func TestSearchBeatsMinFillOnGrids(t *testing.T) {
	h := grid(14, 14, 2)
	order, err := contractionorder.FromOrder(h, orders.MinFill(h))
	if err != nil {
		t.Fatal(err)
	}
	fill, err := contractionorder.EvaluateTree(h, order, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := search(t, h, contractionorder.Options{Seed: 3, Effort: 1})
	checkPlan(t, h, p)
	if p.Cost.Flops > 0.7*fill.Flops || p.Cost.Log2Table > 14 {
		t.Errorf("found %+v, min-fill %+v", p.Cost, fill)
	}
}

// TestSearchIsTheSameEverywhere: repeated, with other threads, and on other machines, by a digest
// of the plan. When a change of the search is meant to change plans, the failing test prints the
// new digest.
func TestSearchIsTheSameEverywhere(t *testing.T) {
	h := grid(18, 18, 2)
	for memory, elsewhere := range map[int64]struct {
		digest string
		moves  int64 // another count of moves ends other searches elsewhere
	}{0: {"fd227035034b4c8a", 47279937}, 1 << 20: {"62a4e108538adfce", 45626140}} {
		o := contractionorder.Options{Seed: 7, Memory: memory, Moves: 4e7, Effort: 1}
		one := search(t, h, o)
		if got := digestOf(one); got != elsewhere.digest || one.Moves != elsewhere.moves {
			t.Errorf("memory %d: the plan has digest %s after %d moves, elsewhere %+v",
				memory, got, one.Moves, elsewhere)
		}
		for o.Threads = range 3 {
			if again := search(t, h, o); !reflect.DeepEqual(one, again) {
				t.Errorf("memory %d, %d threads: %+v, then %+v",
					memory, o.Threads, one.Cost, again.Cost)
			}
		}
		o.Seed = 8
		if other := search(t, h, o); reflect.DeepEqual(one.Tree, other.Tree) {
			t.Error("another seed, the same tree")
		}
	}
}

func digestOf(p contractionorder.Plan) string {
	return fmt.Sprintf("%.8x", sha256.Sum256(fmt.Append(nil, p.Tree.Merges, p.Slices)))
}

func TestSearchKeepsToTheMemory(t *testing.T) {
	h := grid(13, 13, 2)
	whole := search(t, h, contractionorder.Options{})
	for _, part := range []int64{4, 16, 64} {
		memory := int64(inputBytes(h)) + int64(whole.Cost.PeakBytes-inputBytes(h))/part
		p := search(t, h, contractionorder.Options{Memory: memory})
		checkPlan(t, h, p)
		if p.Cost.PeakBytes > float64(memory) || len(p.Slices) == 0 {
			t.Errorf("1/%d of the memory: %+v", part, p.Cost)
		}
		// A grid of side n sliced at k sites is a smaller grid: the overhead stays far below 2^k.
		if p.Cost.Flops > whole.Cost.Flops*math.Sqrt(p.Cost.Slices)*2 {
			t.Errorf("1/%d of the memory takes %v flops in %v slices, the whole %v",
				part, p.Cost.Flops, p.Cost.Slices, whole.Cost.Flops)
		}
	}
}

func TestSearchOverTheMemory(t *testing.T) {
	h := contractionorder.Hypergraph{Dims: []int{100, 100, 100},
		Edges: [][]int{{0, 1}, {1, 2}, {2, 0}}}
	p, err := contractionorder.Search(context.Background(), h,
		contractionorder.Options{Memory: 1000})
	if !errors.Is(err, contractionorder.ErrMemory) || fault.CodeOf(err) != fault.OverBudget {
		t.Errorf("30,000 entries in 1,000 bytes: %v", err)
	}
	if len(p.Tree.Merges) != 2 {
		t.Errorf("no plan beside the error: %+v", p)
	}
}

func TestSearchIsCheapForCheapNetworks(t *testing.T) {
	h := grid(8, 8, 2)
	p := search(t, h, contractionorder.Options{})
	if float64(p.Moves) > 2e6 || p.Cost.Flops > 1e7 {
		t.Errorf("%d moves for %v flops", p.Moves, p.Cost.Flops)
	}
	h = grid(16, 16, 2)
	p = search(t, h, contractionorder.Options{Effort: 0.1})
	if float64(p.Moves) > 0.1*(p.Cost.Flops+16*p.Cost.Writes)*1.5+2e7 {
		t.Errorf("%d moves for %v flops", p.Moves, p.Cost.Flops)
	}
	p = search(t, h, contractionorder.Options{Moves: 1e7})
	if p.Moves > 3e7 {
		t.Errorf("%d moves, 10^7 were asked for", p.Moves)
	}
}

// contour is a closed line of n points in the plane, bent at random, with an edge between those that
// are next to each other or close by: m edges together. Models of shapes in images look like that.
func contour(n, m, dim int, seed uint64) contractionorder.Hypergraph {
	rng := rand.New(rand.NewPCG(seed, 1))
	wave := make([][2]float64, 8)
	for k := 2; k < len(wave); k++ {
		wave[k] = [2]float64{rng.NormFloat64() / float64(k), 2 * math.Pi * rng.Float64()}
	}
	at := make([][2]float64, n)
	for i := range at {
		angle := 2 * math.Pi * float64(i) / float64(n)
		radius := 1.0
		for k, w := range wave {
			radius += 0.45 * w[0] * math.Cos(float64(k)*angle+w[1])
		}
		at[i] = [2]float64{1.6 * max(radius, 0.15) * math.Cos(angle), max(radius, 0.15) * math.Sin(angle)}
	}

	apart := func(e []int) float64 {
		if e[1]-e[0] == 1 || e[1]-e[0] == n-1 {
			return 0
		}
		return math.Hypot(at[e[0]][0]-at[e[1]][0], at[e[0]][1]-at[e[1]][1])
	}
	var pairs [][]int
	for i := range n {
		for j := range i {
			pairs = append(pairs, []int{j, i})
		}
	}
	slices.SortStableFunc(pairs, func(a, b []int) int { return cmp.Compare(apart(a), apart(b)) })
	return contractionorder.Hypergraph{Dims: slices.Repeat([]int{dim}, n), Edges: pairs[:m]}
}

// TestSearchCostsLessThanItSaves: where the first tree is nearly as good as any, the moves of a search
// cost a small part of the contraction, and ten times as many find little.
func TestSearchCostsLessThanItSaves(t *testing.T) {
	price := func(p contractionorder.Plan) float64 { return p.Cost.Flops + 16*p.Cost.Writes }
	for seed := range uint64(4) {
		h := contour(60, 140, 21, seed)
		p := search(t, h, contractionorder.Options{})
		checkPlan(t, h, p)
		long := search(t, h, contractionorder.Options{Effort: 10.0 / policy.MoveCost})
		t.Logf("%.3g moves for a price of %.4g; %.3g moves for %.4g",
			float64(p.Moves), price(p), float64(long.Moves), price(long))
		if moves := policy.MoveCost * float64(p.Moves); moves > 0.4*price(p) {
			t.Errorf("contour %d: moves worth %.3g for a price of %.3g", seed, moves, price(p))
		}
		if price(p) > 1.05*price(long) {
			t.Errorf("contour %d: price %.4g, a longer search finds %.4g", seed, price(p), price(long))
		}
	}
}

func TestSearchStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := contractionorder.Search(ctx, grid(20, 20, 3),
		contractionorder.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSearchOfNothing(t *testing.T) {
	for _, h := range []contractionorder.Hypergraph{
		{},
		{Dims: []int{3}},
		{Dims: []int{3}, Edges: [][]int{{0}}},
		{Dims: []int{1, 1}, Edges: [][]int{{0, 1}, {1}}},
		{Edges: [][]int{{}, {}, {}}},
		{Dims: []int{2, 3}, Edges: [][]int{{0}, {1}, {0}, {1}}},
	} {
		p := search(t, h, contractionorder.Options{})
		checkPlan(t, h, p)
		if p.Slices == nil || p.Cost.Slices != 1 || len(p.Tree.Merges) != max(len(h.Edges)-1, 0) {
			t.Errorf("%+v: %+v", h, p)
		}
	}
	if _, err := contractionorder.Search(context.Background(),
		contractionorder.Hypergraph{Dims: []int{2},
			Edges: [][]int{{1}}}, contractionorder.Options{}); !errors.Is(err,
		contractionorder.ErrTree) {
		t.Errorf("an edge with an unknown index: %v", err)
	}
}

// TestSearchOfHopelessNetworks: tables beyond float64 end in an error or a plan, within the moves.
func TestSearchOfHopelessNetworks(t *testing.T) {
	h := contractionorder.Hypergraph{}
	r := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		h.Dims = append(h.Dims, 1<<20)
	}
	for range 900 {
		h.Edges = append(h.Edges, r.Perm(300)[:2])
	}
	p, err := contractionorder.Search(context.Background(), h, contractionorder.Options{Moves: 2e7})
	if !errors.Is(err, contractionorder.ErrMemory) {
		t.Errorf("%v, %+v", err, p.Cost)
	}
	if math.IsInf(p.Cost.Flops, 0) || math.IsNaN(p.Cost.Flops) {
		t.Errorf("%+v", p.Cost)
	}
}

func ExampleSearch() {
	// A ring of four tensors; index 3 has dimension 1 and costs nothing.
	h := contractionorder.Hypergraph{Dims: []int{2, 3, 4, 1, 5},
		Edges: [][]int{{0, 1}, {1, 2, 3}, {2, 4}, {4, 0}}}
	p, err := contractionorder.Search(context.Background(), h, contractionorder.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Tree.Merges, p.Slices)
	fmt.Printf("%.0f flops, %.0f bytes\n", p.Cost.Flops, p.Cost.PeakBytes)
	// Output:
	// [[2 3] [1 4] [0 5]] []
	// 125 flops, 496 bytes
}
