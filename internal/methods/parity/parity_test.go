package parity

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// drawn returns a model of factors of parities, of some of the variables alone, and of pairs with any numbers.
func drawn(rng *rand.Rand, n, long, pairs, fields int, zeros float64) *factorgraph.Model {
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n)}
	number := func() float64 {
		if rng.Float64() < zeros {
			return 0
		}
		return math.Exp(2 * rng.NormFloat64())
	}
	add := func(scope []int, entry func(x []int) float64) {
		t := &tensor.Dense{Shape: slices.Repeat([]int{2}, len(scope))}
		oracle.Each(t.Shape, func(x []int) { t.Data = append(t.Data, entry(x)) })
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: t})
	}
	for range long {
		values := [2]float64{number(), math.Exp(rng.NormFloat64())}
		if rng.IntN(2) == 0 {
			values[0], values[1] = values[1], values[0]
		}
		add(rng.Perm(n)[:3+rng.IntN(3)], func(x []int) float64 {
			sum := 0
			for _, a := range x {
				sum += a
			}
			return values[sum%2]
		})
	}
	for range pairs {
		add(rng.Perm(n)[:2], func([]int) float64 { return math.Exp(rng.NormFloat64()) })
	}
	for _, v := range rng.Perm(n)[:fields] {
		add([]int{v}, func([]int) float64 { return math.Exp(rng.NormFloat64()) })
	}
	return m
}

// TestAgainstEnumeration: Z and marginals under evidence.
func TestAgainstEnumeration(t *testing.T) {
	zeros, uniform, exact := 0, 0, 0
	for k := range uint64(150) {
		rng := rand.New(rand.NewPCG(k, 1))
		n := 6 + rng.IntN(6)
		m := drawn(rng, n, 2+rng.IntN(n), rng.IntN(4), rng.IntN(4), []float64{0, 0.5, 0.95}[k%3])
		evidence := factorgraph.Evidence{}
		if k%2 > 0 {
			evidence.Hard = []factorgraph.Observation{{Var: 1, Value: rng.IntN(2)}}
			evidence.Soft = []factorgraph.Likelihood{{Var: 3, Weights: []float64{0.2, 1.7}}}
		}
		net, err := reparam.Build(t.Context(), m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		conditioned, err := net.Condition(evidence)
		if err != nil {
			t.Fatal(err)
		}
		if ok, _ := hasParities(net); !ok {
			t.Fatal("parities are not recognised")
		}
		value, err := contraction.Part(t.Context(), problem.New(conditioned, problem.Options{}), &Parities{}, btn.Want{Marginals: true})
		if err != nil {
			t.Fatal(err)
		}
		if value.Doubt != "" {
			t.Errorf("model %d: %s", k, value.Doubt)
		}
		want := oracle.Z(m, evidence)
		if want.Sign() == 0 {
			zeros++
			if !value.Z.IsZero() {
				t.Errorf("model %d: Z is %v, and 0", k, value.Z)
			}
			continue
		}
		exact++
		if off := oracle.RelativeError(value.Z.Mant, value.Z.Exp, want); !(off <= 1e-13) {
			t.Errorf("model %d: Z is off by %.2g of it", k, off)
		}
		at := 0
		for v, row := range oracle.Marginals(m, evidence) {
			for x, p := range row {
				got := scaled.Make(value.Marginals.Mant[at], value.Marginals.Exp).Div(value.Z).Float64()
				if at++; !(math.Abs(got-p) <= 1e-12) {
					t.Errorf("model %d: P(%d = %d) is %v, want %v", k, v, x, got, p)
				}
				if got == 0.5 {
					uniform++
				}
			}
		}
	}
	if zeros < 5 || exact < 50 || uniform < 20 {
		t.Errorf("%d models with Z = 0, %d others, %d even marginals", zeros, exact, uniform)
	}
}

// TestFrustratedRing: a ring of n spins whose couplings have an odd number of negative signs, Z = 2^n (cosh^n J − sinh^n J), for n and J
// where the two terms agree in many digits.
func TestFrustratedRing(t *testing.T) {
	const n = 30
	for _, coupling := range []float64{0.5, 3, 9} {
		m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n)}
		for v := range n {
			a, b := math.Exp(coupling), math.Exp(-coupling)
			if v == 7 {
				a, b = b, a
			}
			m.Factors = append(m.Factors, factorgraph.Factor{
				Scope: []int{v, (v + 1) % n}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{a, b, b, a}},
			})
		}
		net, err := reparam.Build(t.Context(), m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		value, err := contraction.Part(t.Context(), problem.New(net, problem.Options{}), &Parities{}, btn.Want{Marginals: true})
		if err != nil {
			t.Fatal(err)
		}
		float := func(x float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(x) }
		a, b := float(math.Exp(coupling)), float(math.Exp(-coupling))
		sum, difference := float(1), float(1) // (a + b)^n, (a − b)^n
		for range n {
			sum.Mul(sum, float(0).Add(a, b))
			difference.Mul(difference, float(0).Sub(a, b))
		}
		if off := oracle.RelativeError(value.Z.Mant, value.Z.Exp, sum.Sub(sum, difference)); !(off <= 1e-13) {
			t.Errorf("coupling %v: Z is off by %.2g of it", coupling, off)
		}
	}
}

// TestBeyondFloat64: equal variables whose weights together leave the range of float64, and factors of one pair that do.
func TestBeyondFloat64(t *testing.T) {
	equal := []float64{1, 0, 0, 1}
	for _, small := range []float64{0x1p-265, 0x1p-300} {
		m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, 5)}
		for v := range 5 {
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1, small}}})
			if v > 0 {
				m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{0, v}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: equal}})
			}
		}
		checkWithin(t, m, factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 4, Value: 1}}})
	}
	pair := func(a, b float64) factorgraph.Factor {
		return factorgraph.Factor{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{a, b, b, a}}}
	}
	m := &factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{pair(1, 1e-200), pair(1, 1e-200), pair(0, 1)}}
	checkWithin(t, m, factorgraph.Evidence{})
}

// checkWithin compares Z with enumeration.
func checkWithin(t *testing.T, m *factorgraph.Model, evidence factorgraph.Evidence) {
	t.Helper()
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	conditioned, err := net.Condition(evidence)
	if err != nil {
		t.Fatal(err)
	}
	value, err := contraction.Part(t.Context(), problem.New(conditioned, problem.Options{}), &Parities{}, btn.Want{Marginals: true})
	if err != nil {
		t.Fatal(err)
	}
	if off := oracle.RelativeError(value.Z.Mant, value.Z.Exp, oracle.Z(m, evidence)); !(off <= 1e-13) {
		t.Errorf("Z = %v is off by %.2g of it", value.Z, off)
	}
}
