package bp_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// gaugeTolerance is relative to the entry at 0…0: messages converge to 1e-12, and maps here have
// condition numbers below 1e3.
const gaugeTolerance = 1e-8

// gauged calls f with random models of any form of factor, arity and domain whose messages
// converged, and their networks. Zeros are few, so that most models have a fixed point.
func gauged(
	t *testing.T, cores query.CoreChoice,
	f func(trial int, m *factorgraph.Model, net *btn.Network, state *bp.State),
) {
	const seed = 30
	rng := rand.New(rand.NewPCG(seed, 3))
	seen := 0
	for trial := range 60 {
		o := modeltest.SmallOptions{Variables: 3 + rng.IntN(4), Factors: 3 + rng.IntN(4), MinDomain: 1 + rng.IntN(2),
			MaxDomain: 4, MaxArity: 2 + rng.IntN(4),
			Zeros: float64(trial%3) * 0.03, Constant: trial%4 == 0}
		m := modeltest.Small(rng, o)
		state, complete, err := bp.Messages(context.Background(), m, bp.Options{})
		if err != nil {
			t.Fatalf("seed %d, trial %d: %v", seed, trial, err)
		}
		net, err := bp.GaugedNetwork(context.Background(), m, cores, bp.Options{})
		if err != nil {
			t.Fatalf("seed %d, trial %d: %v", seed, trial, err)
		}
		if !complete || !state.Converged || !allBP(net, cores) {
			continue
		}
		seen++
		f(trial, m, net, state)
	}
	if seen < 40 {
		t.Errorf("only %d of 60 models have a gauge on every leg", seen)
	}
}

// allBP says that every incidence has a map made of messages.
func allBP(net *btn.Network, cores query.CoreChoice) bool {
	for _, l := range incidences(net, cores) {
		if net.Maps[l].Kind != query.MapBP {
			return false
		}
	}
	return true
}

// incidences are the legs of the factors.
func incidences(net *btn.Network, cores query.CoreChoice) []int {
	var legs []int
	if cores == query.CoresAreFactors {
		for _, c := range net.Cores {
			legs = append(legs, c.Legs...)
		}
		return legs
	}
	for _, l := range net.Links[:len(net.Links)-len(net.Variables)] {
		legs = append(legs, l.Legs...)
	}
	return legs
}

// TestBetheValueIsTheEntryAtZero: B_0…0 with the links at 0 is the Bethe value at a fixed point.
func TestBetheValueIsTheEntryAtZero(t *testing.T) {
	gauged(t, query.CoresAreFactors, func(trial int, _ *factorgraph.Model, net *btn.Network, state *bp.State) {
		got := net.Scale
		for _, c := range net.Cores {
			got = got.Mul(tensor.At(c.T, make([]int, len(c.Legs))))
		}
		for _, l := range net.Links {
			got = got.Mul(tensor.At(l.T, make([]int, len(l.Legs))))
		}
		if want := state.LnZ(); math.Abs(got.LogAbs()-want) > gaugeTolerance || got.Sign() != 1 {
			t.Errorf("trial %d: ln B_0…0 = %v, ln Z_BP = %v", trial, got.LogAbs(), want)
		}
	})
}

// TestNoTensorHasExactlyOneExcitedLeg: every entry of a core or a link with one leg at a value other
// than 0 is 0.
func TestNoTensorHasExactlyOneExcitedLeg(t *testing.T) {
	gauged(t, query.CoresAreFactors, func(trial int, _ *factorgraph.Model, net *btn.Network, _ *bp.State) {
		for n, c := range net.Cores {
			if worst := singleExcitation(c.T); worst > gaugeTolerance {
				t.Errorf("trial %d: core %d has %g of its entry at 0…0", trial, n, worst)
			}
		}
		for n, l := range net.Links {
			if worst := singleExcitation(l.T); worst > gaugeTolerance {
				t.Errorf("trial %d: link %d has %g of its entry at 0…0", trial, n, worst)
			}
		}
	})
}

// singleExcitation returns the largest entry with one leg excited, relative to that at 0…0.
func singleExcitation(t tensor.Tensor) float64 {
	x := make([]int, len(t.Dims()))
	zero, worst := tensor.At(t, x), 0.0
	for leg, d := range t.Dims() {
		for x[leg] = 1; x[leg] < d; x[leg]++ {
			worst = max(worst, math.Abs(tensor.At(t, x).Div(zero).Float64()))
		}
		x[leg] = 0
	}
	return worst
}

// TestGaugeOfVariablesAsCores: both statements hold once the legs to the weights are summed.
func TestGaugeOfVariablesAsCores(t *testing.T) {
	gauged(t, query.CoresAreVariables, func(trial int, m *factorgraph.Model, net *btn.Network, state *bp.State) {
		got := net.Scale
		links := net.Links[:len(net.Links)-len(m.Domains)]
		for n, l := range links {
			got = got.Mul(tensor.At(l.T, make([]int, len(l.Legs))))
			if worst := singleExcitation(l.T); worst > gaugeTolerance {
				t.Errorf("trial %d: link %d has %g of its entry at 0…0", trial, n, worst)
			}
		}
		for _, w := range net.Links[len(links):] {
			if len(w.Legs) == 0 {
				got = got.Mul(tensor.At(w.T, nil))
			}
		}
		for n, c := range net.Cores {
			cp := c.T.(*tensor.CP)
			last := len(cp.Shape) - 1
			summed := &tensor.CP{Shape: cp.Shape[:last], Vectors: cp.Vectors[:last]}
			for _, w := range net.Links[len(links):] {
				if len(w.Legs) == 1 && w.Legs[0] == c.Legs[last] {
					summed.Weights = w.T.(*tensor.CP).Weights
				}
			}
			got = got.Mul(tensor.At(summed, make([]int, last)))
			if worst := singleExcitation(summed); worst > gaugeTolerance {
				t.Errorf("trial %d: core %d has %g of its entry at 0…0", trial, n, worst)
			}
		}
		if want := state.LnZ(); math.Abs(got.LogAbs()-want) > gaugeTolerance {
			t.Errorf("trial %d: %v, ln Z_BP = %v", trial, got.LogAbs(), want)
		}
	})
}

// TestLargeFactorsInTheirForm: a symmetric factor too large to be written out for messages, among
// pair factors, has the same messages as in the form of a table; so has a CP factor.
func TestLargeFactorsInTheirForm(t *testing.T) {
	const n = 13
	atMost, err := factorgraph.AtMost(n, 4)
	if err != nil {
		t.Fatal(err)
	}
	noisyOr := &tensor.CP{Shape: atMost.Dims(), Weights: []float64{1, -0.9}}
	rng := rand.New(rand.NewPCG(31, 1))
	for range n {
		noisyOr.Vectors = append(noisyOr.Vectors, []float64{1, 1, 1, rng.Float64()})
	}
	dims := atMost.Dims()
	threeLevels := make([]int, 8)
	for k := range threeLevels {
		threeLevels[k] = 3
	}
	for _, form := range []tensor.Tensor{
		atMost, noisyOr, severalTerms(rng, dims), severalTerms(rng, threeLevels),
	} {
		n, dims := len(form.Dims()), form.Dims()
		table, err := tensor.ToDense(form, 1<<13)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(31, 31))
		m := &factorgraph.Model{Factors: []factorgraph.Factor{{Table: form}}}
		for i := range n {
			m.Domains = append(m.Domains, dims[i])
			m.Factors[0].Scope = append(m.Factors[0].Scope, i)
			m.Factors = append(m.Factors, factorgraph.Factor{
				Scope: []int{i},
				Table: modeltest.Tensor(rng, modeltest.Dense, dims[i:i+1], modeltest.SmallOptions{}),
			})
			if i > 0 {
				m.Factors = append(m.Factors, factorgraph.Factor{
					Scope: []int{i - 1, i},
					Table: modeltest.Tensor(rng, modeltest.Dense, dims[i-1:i+1], modeltest.SmallOptions{}),
				})
			}
		}
		own, complete, err := bp.Messages(context.Background(), m, bp.Options{})
		if err != nil || !complete || !own.Converged {
			t.Fatalf("%T: complete %v, %v", form, complete, err)
		}
		m.Factors[0].Table = table
		written, _, err := bp.Messages(context.Background(), m, bp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(own.LnZ()-written.LnZ()) > 1e-9 {
			t.Errorf("%T: ln Z_BP = %v, as a table %v", form, own.LnZ(), written.LnZ())
		}
		for i := range n {
			if p, q := own.Belief(i)[0], written.Belief(i)[0]; math.Abs(p-q) > 1e-9 {
				t.Errorf("%T: P(%d = 0) = %v, as a table %v", form, i, p, q)
			}
		}
	}
}

// severalTerms returns a positive symmetry-CP tensor of three terms, one of them without vectors.
func severalTerms(rng *rand.Rand, dims []int) *tensor.SymmetryCP {
	levels, err := countspace.Identity(dims)
	if err != nil {
		panic(err)
	}
	t := &tensor.SymmetryCP{Shape: dims, Levels: levels}
	for z := range 3 {
		term := tensor.SymmetryRankOne{Alpha: 1 + rng.Float64(), S: countspace.New(levels.Shape()).Coef}
		for c := range term.S.Mant {
			term.S.Set(c, scaled.Make(1+rng.Float64(), int64(rng.IntN(4))))
		}
		for _, d := range dims {
			if z == 0 {
				break
			}
			v := make([]float64, d)
			for x := range v {
				v[x] = 0.2 + rng.Float64()
			}
			term.R = append(term.R, v)
		}
		t.Terms = append(t.Terms, term)
	}
	return t
}

// TestSymmetricFactorKeepsFormInTheGauge: with the same field on every variable all messages are
// one, up to rounding.
func TestSymmetricFactorKeepsFormInTheGauge(t *testing.T) {
	const n = 60
	atMost, err := factorgraph.AtMost(n, 3)
	if err != nil {
		t.Fatal(err)
	}
	m := &factorgraph.Model{Factors: []factorgraph.Factor{{Table: atMost}}}
	for i := range n {
		m.Domains = append(m.Domains, 2)
		m.Factors[0].Scope = append(m.Factors[0].Scope, i)
		m.Factors = append(m.Factors, factorgraph.Factor{
			Scope: []int{i},
			Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1, 0.3}},
		})
	}
	net, err := bp.GaugedNetwork(context.Background(), m, query.CoresAreFactors, bp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := net.Cores[0].T.(*tensor.Symmetric); !ok || !allBP(net, query.CoresAreFactors) {
		t.Errorf("the core is %T, its first map %q", net.Cores[0].T, net.Maps[0].Kind)
	}
	// One factor and unary ones are a tree: Z_BP = Z = Σ_{k ≤ 3} C(60, k) 0.3^k.
	state, _, err := bp.Messages(context.Background(), m, bp.Options{})
	if want := math.Log(1 + 60*0.3 + 1770*0.09 + 34220*0.027); err != nil ||
		math.Abs(state.LnZ()-want) > 1e-12*want {
		t.Errorf("ln Z_BP = %v, want %v (%v)", state.LnZ(), want, err)
	}
}

// TestFallbackToIdentity: where messages exclude the values preferred by the rest of the model, or
// Z = 0, legs keep the identity and Z stays.
func TestFallbackToIdentity(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{
		{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 1, 1e-9, 1e-9}}},
		{Scope: []int{0}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1e-9, 1}}}}}
	net, err := bp.GaugedNetwork(context.Background(), m, query.CoresAreFactors, bp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if net.Maps[0].Kind != query.MapIdentity || net.Maps[1].Kind != query.MapBP {
		t.Errorf("maps %q, %q", net.Maps[0].Kind, net.Maps[1].Kind)
	}
	z, _ := oracle.NetworkZ(net)
	if got, _ := z.Float64(); math.Abs(got-4e-9) > 1e-20 {
		t.Errorf("Z = %v, want 4e-9", got)
	}
	m.Factors[1].Table = &tensor.Dense{Shape: []int{2}, Data: []float64{0, 0}}
	if net, err = bp.GaugedNetwork(context.Background(), m, query.CoresAreFactors,
		bp.Options{}); err != nil || net.Maps[1].Kind != query.MapIdentity {
		t.Errorf("Z = 0: %v", err)
	}
	// Messages that float64 cannot hold leave identity maps as well.
	const small = 1e-300
	deep := &factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{
		{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 0, 0, small}}},
		{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 0, 0, small}}},
		{Scope: []int{0}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1, 1}}},
		{Scope: []int{1}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{0, 1}}}}}
	if net, err = bp.GaugedNetwork(context.Background(), deep, query.CoresAreFactors, bp.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := net.Validate(); err != nil || net.Scale == (scaled.Number{}) {
		t.Errorf("scale %v, %v", net.Scale, err)
	}
}
