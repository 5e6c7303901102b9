package descent_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/descent"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/truth"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

func network(t *testing.T, m *factorgraph.Model) *btn.Network {
	t.Helper()
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// TestRefusals: a network without a most probable assignment, or with none within reach, is refused with the
// factor's name.
func TestRefusals(t *testing.T) {
	signed := &factorgraph.Model{Domains: []int{2, 2, 2}, Factors: []factorgraph.Factor{
		{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 4}}},
		{Scope: []int{2, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, -0.5, 4}}},
	}}
	wide := &factorgraph.Model{Domains: slices.Repeat([]int{2}, 41)}
	or, err := factorgraph.NoisyOr(0.1, slices.Repeat([]float64{0.3}, 40)...)
	if err != nil {
		t.Fatal(err)
	}
	scope := make([]int, 41)
	for v := range scope {
		scope[v] = v
	}
	wide.Factors = append(wide.Factors, factorgraph.Factor{Scope: scope, Table: or})

	for _, c := range []struct {
		m    *factorgraph.Model
		code fault.Code
		says string
	}{
		{signed, fault.BadInput, "the factor over variables 1, 2 has an entry below 0"},
		{wide, fault.OverBudget, "the factor over variables 0, 1, 2, 3,"},
	} {
		for _, ask := range []btn.Ask{btn.AskMPE, btn.AskMap, btn.AskSamples} {
			_, err := descent.Prepare(context.Background(), network(t, c.m), ask, []int{0}, 1<<30)
			if c.code == fault.OverBudget && ask != btn.AskMPE { // sums over the states of a noisy-or need no table of it
				if err != nil {
					t.Errorf("%s: %v", ask, err)
				}
				continue
			}
			if fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %s: %s", ask, err, c.code, c.says)
			}
		}
	}

	// A few of the parents observed, and the table fits.
	var e factorgraph.Evidence
	for v := range 30 {
		e.Hard = append(e.Hard, factorgraph.Observation{Var: v})
	}
	net, err := network(t, wide).Condition(e)
	if err == nil {
		_, err = descent.Prepare(context.Background(), net, btn.AskMPE, nil, 1<<20)
	}
	if err != nil {
		t.Errorf("ten parents left: %v", err)
	}
}

// ask plans and answers a question for the most probable assignment.
func ask(t *testing.T, net *btn.Network, set []int, memory int64) (*btn.Found, *descent.Path) {
	t.Helper()
	kind := btn.AskMPE
	if set != nil {
		kind = btn.AskMap
	}
	p, err := descent.Prepare(context.Background(), net, kind, set, 0)
	if err != nil {
		t.Fatal(err)
	}
	path, _, err := p.Plan(context.Background(), descent.PlanOptions{Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	o := descent.Options{Memory: memory, To: path.Count}
	found, err := p.Best(context.Background(), path, o)
	if set != nil {
		found, err = p.BestOfSet(context.Background(), path, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return found, path
}

// TestCountersAreFollowed: exactly 10 of 40, which no table holds, with weights that say which.
func TestCountersAreFollowed(t *testing.T) {
	const n, k = 40, 10
	values := make([]float64, n+1)
	values[k] = 1
	levels := countspace.Levels{D: 2, Of: slices.Repeat([][]uint8{{0, 1}}, n)}
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n)}
	all := make([]int, n)
	want := make([]int, n)
	ln := 0.0
	for v := range n {
		all[v] = v
		w := math.Exp(float64((v*7)%n) / 10) // all different
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v},
			Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1, w}}})
		if (v*7)%n >= n-k {
			want[v], ln = 1, ln+math.Log(w)
		}
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: all, Table: &tensor.Symmetric{
		Shape: m.Domains, Levels: levels, Values: scaled.Vector{Mant: values},
	}})
	found, _ := ask(t, network(t, m), nil, 0)
	if !slices.Equal(found.Values, want) || !found.Unique || math.Abs(found.Weight.LogAbs()-ln) > 1e-11 {
		t.Errorf("%+v, want %v with ln %v", found, want, ln)
	}
}

// TestTies: without a weight that tells them apart the smallest assignment is taken, and others are
// said to be as good; likewise where there are more than are looked at.
func TestTies(t *testing.T) {
	equal := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 0.25, 0.25, 1}}
	for _, n := range []int{3, 12} {
		m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, 2*n)}
		for v := range n {
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{2 * v, 2*v + 1}, Table: equal})
		}
		found, _ := ask(t, network(t, m), nil, 0)
		if slices.Contains(found.Values, 1) || found.Unique || found.Weight.LogAbs() != 0 {
			t.Errorf("%d pairs: %+v", n, found)
		}
	}
}

// TestRelaxedMAP: where sums first do not fit, the bound is no less than the largest weight, the
// assignment found has the weight stated and no more than the largest; where both meet it is the
// best.
func TestRelaxedMAP(t *testing.T) {
	relaxed, exact := 0, 0
	for seed := range uint64(40) {
		// A chain of pairs: every other variable is asked for, and summing the others out joins all.
		rng := rand.New(rand.NewPCG(seed, 5))
		const n = 6
		m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n+1)}
		for v := range n {
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v, n},
				Table: modeltest.Tensor(rng, modeltest.Dense, []int{2, 2}, modeltest.SmallOptions{})})
		}
		set := []int{0, 1, 2, 3, 4, 5}
		weights := truth.Weights(m)
		sums := make([]oracle.Number, len(weights)/2)
		top := 0
		for k := range sums {
			sums[k] = weights[2*k].Add(weights[2*k+1])
			if sums[k].LnOver(sums[top]) > 0 {
				top = k
			}
		}

		found, path := ask(t, network(t, m), set, 300) // 2^6 entries do not fit
		if !path.Relaxed {
			t.Fatalf("seed %d: a path in %d slices that is not relaxed", seed, path.Count)
		}
		at := 0
		for _, x := range found.Values {
			at = 2*at + x
		}
		best := sums[top].Ln()
		if math.Abs(found.Weight.LogAbs()-sums[at].Ln()) > 1e-12 {
			t.Errorf("seed %d: %+v weighs %v", seed, found, sums[at].Ln())
		}
		if found.Relaxed && found.Bound < best-1e-12 || !found.Relaxed && sums[at].Ln() < best-1e-12 {
			t.Errorf("seed %d: %+v, the best is %v", seed, found, best)
		}
		if found.Relaxed {
			relaxed++
		} else {
			exact++
		}

		if whole, path := ask(t, network(t, m), set, 0); path.Relaxed || whole.Relaxed ||
			math.Abs(whole.Weight.LogAbs()-best) > 1e-12 {
			t.Errorf("seed %d: %+v with memory, the best is %v", seed, whole, best)
		}
	}
	if relaxed == 0 {
		t.Errorf("%d relaxed and %d exact", relaxed, exact)
	}
}

// TestRangeOfWeights: weights far beyond float64, and differences that only logarithms see.
func TestRangeOfWeights(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 2, 2}}
	for v := range 3 {
		for range 9 {
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v},
				Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1e-300, 2e-300}}})
		}
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{0, 1, 2},
		Table: &tensor.Dense{Shape: []int{2, 2, 2}, Data: []float64{0, 0, 0, 1e-250, 0, 1e-300, 1e-290, 0}}})
	weights := truth.Weights(m)
	top := 0
	for k, w := range weights {
		if w.Sign() > 0 && (weights[top].IsZero() || w.LnOver(weights[top]) > 0) {
			top = k
		}
	}
	found, _ := ask(t, network(t, m), nil, 0)
	if at := 4*found.Values[0] + 2*found.Values[1] + found.Values[2]; at != top || !found.Unique ||
		math.Abs(found.Weight.LogAbs()-weights[top].Ln()) > 1e-9 {
		t.Errorf("%+v, want %d with ln %v", found, top, weights[top].Ln())
	}
}

// TestLongChains: a hundred thousand variables, by a path that no recursion follows.
func TestLongChains(t *testing.T) {
	const n = 100_000
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n)}
	step := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{0.1, 0.9, 0.8, 0.2}}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{0}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1, 3}}})
	for v := range n - 1 {
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v, v + 1}, Table: step})
	}
	found, _ := ask(t, network(t, m), nil, 0)
	ln := math.Log(3) + (n/2)*math.Log(0.8) + (n/2-1)*math.Log(0.9) // 1 0 1 0 …
	for v, x := range found.Values {
		if x != 1-v%2 {
			t.Fatalf("variable %d is %d", v, x)
		}
	}
	if math.Abs(found.Weight.LogAbs()-ln) > 1e-6 || !found.Unique {
		t.Errorf("ln weight %v, want %v; unique %v", found.Weight.LogAbs(), ln, found.Unique)
	}
}
