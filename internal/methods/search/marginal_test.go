package search_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/descent"
	"github.com/basetensor/basetensor/internal/methods/search"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// lnSums are the logarithms of the weights of a set's assignments, the others summed out, and the largest.
func lnSums(m *factorgraph.Model, set []int) (lns map[string]float64, most float64) {
	lns, most = map[string]float64{}, math.Inf(-1)
	sums := map[string]float64{}
	for key, ln := range lnWeights(m) {
		var x []int
		for v, field := 0, 0; v < len(m.Domains); v++ {
			fmt.Sscan(key[1+2*v:2+2*v], &field) // values have one digit
			x = append(x, field)
		}
		var own []int
		for _, v := range set {
			own = append(own, x[v])
		}
		sums[fmt.Sprint(own)] += math.Exp(ln)
	}
	for key, sum := range sums {
		lns[key] = math.Log(sum)
		most = max(most, lns[key])
	}
	return lns, most
}

// TestMarginalEqualToEnumeration: run to the end the search finds the largest sum; wherever it ends its bound is not below that, and its
// weight is the assignment's, or encloses it.
func TestMarginalEqualToEnumeration(t *testing.T) {
	ctx := context.Background()
	enclosed, open := 0, 0
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 9))
		m := drawn(t, rng, seed)
		set := rng.Perm(len(m.Domains))[:1+rng.IntN(len(m.Domains))]
		lns, most := lnSums(m, set)
		net, err := reparam.Build(ctx, m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := problem.New(net, problem.Options{})
		tables, err := descent.PreparedOf(ctx, p, btn.AskMap, set)
		if err != nil {
			t.Fatal(err)
		}
		order, err := descent.SumsFirstOrder(ctx, tables, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, work := range []int64{1 << 30, 1, 200} {
			part := &search.Search{
				Shape: tables.Shape(), Work: work, Map: &search.Marginal{Order: order, Entries: []float64{1, 8, 1 << 20}[rng.IntN(3)]},
			}
			if err := part.Fits(net); err != nil {
				t.Fatal(err)
			}
			value, err := part.Contract(ctx, p, btn.Want{Map: set})
			whole := work == 1<<30
			if err != nil {
				t.Fatalf("seed %d, work %d: %v", seed, work, err)
			}
			f := value.Found
			if f == nil || len(f.Values) == 0 {
				if whole && len(lns) > 0 || f != nil && f.Bound < most-1e-11*(1+math.Abs(most)) {
					t.Fatalf("seed %d: nothing of %d assignments, %+v", seed, len(lns), f)
				}
				continue
			}
			ln, upper, slack := f.Weight.LogAbs(), f.Weight.LogAbs(), 1e-11*(1+math.Abs(most))
			if f.Upper != 0 {
				upper = f.Upper
				enclosed++
			}
			if f.Relaxed {
				open++
			}
			own, possible := lns[fmt.Sprint(f.Values)]
			switch {
			case !possible || own < ln-slack || own > upper+slack:
				t.Fatalf("seed %d, work %d: %v has ln weight %v, said to be from %v to %v", seed, work, f.Values, own, ln, upper)
			case f.Bound < most-slack || f.Bound < ln:
				t.Fatalf("seed %d, work %d: bound %v, the largest is %v", seed, work, f.Bound, most)
			case whole && (f.Relaxed || f.Upper != 0 || ln < most-btn.Tolerance):
				t.Fatalf("seed %d: %v with bound %v, the largest is %v", seed, ln, f.Bound, most)
			case !f.Relaxed && f.Bound > ln+btn.Tolerance:
				t.Fatalf("seed %d: %v is said to be the best, with bound %v", seed, ln, f.Bound)
			}
		}
	}
	if enclosed < 100 || open < 100 {
		t.Errorf("%d assignments have bounds alone, %d are not proved: the test sees too few", enclosed, open)
	}
}

// TestMarginalEndsInTime: a search whose time is short has an assignment and a bound, or says that it has none; the same work is the same
// answer.
func TestMarginalEndsInTime(t *testing.T) {
	m, err := generate.Random(generate.RandomOptions{Variables: 60, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set := make([]int, 40)
	for k := range set {
		set[k] = k
	}
	p := problem.New(net, problem.Options{})
	tables, err := descent.PreparedOf(context.Background(), p, btn.AskMap, set)
	if err != nil {
		t.Fatal(err)
	}
	order, err := descent.SumsFirstOrder(context.Background(), tables, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	part := &search.Search{Shape: tables.Shape(), Work: 1 << 40, Map: &search.Marginal{Order: order, Entries: 256}}
	value, err := part.Contract(context.Background(), p, btn.Want{Map: set, Until: time.Now().Add(500 * time.Millisecond)})
	if err != nil && fault.CodeOf(err) != fault.OverBudget || err == nil && value.Found == nil {
		t.Fatalf("%+v, %v", value.Found, err)
	}
	if value.Flops >= policy.SearchFlops*(1<<40) {
		t.Errorf("ended after all its work")
	}
	part.Work = 100_000
	first, err := part.Contract(context.Background(), p, btn.Want{Map: set})
	if err != nil {
		t.Fatal(err)
	}
	again, err := part.Contract(context.Background(), p, btn.Want{Map: set})
	if err != nil || fmt.Sprint(*first.Found) != fmt.Sprint(*again.Found) || first.Flops != again.Flops {
		t.Errorf("%+v, then %+v: %v", first.Found, again.Found, err)
	}
	if part.Map.Entries = 0; part.Fits(net) == nil {
		t.Error("mini-buckets of no entry fit")
	}
	part.Map.Entries = 256
	part.Map.Order = append([]int{set[0]}, part.Map.Order...)
	if _, err := part.Contract(context.Background(), p, btn.Want{Map: set}); err == nil {
		t.Error("an order with an index twice")
	}
}
