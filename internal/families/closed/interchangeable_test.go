package closed

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// exchanged draws a model of n spins with a table for every set of order variables: a function of the number of spins up after some are
// turned round, times random vectors for each of its variables. Tables of pairs come with it.
func exchanged(rng *rand.Rand, n, order int) *factorgraph.Model {
	m := &factorgraph.Model{Domains: make([]int, n)}
	turned := make([]int, n)
	for i := range n {
		m.Domains[i], turned[i] = 2, rng.IntN(2)
	}
	table := func(scope []int, ln []float64) {
		shape := make([]int, len(scope))
		main := make([]float64, len(scope))
		for k := range scope {
			shape[k], main[k] = 2, 0.3*rng.NormFloat64()
		}
		var data []float64
		oracle.Each(shape, func(x []int) {
			up, sum := 0, 0.0
			for k, v := range scope {
				up += x[k] ^ turned[v]
				sum += main[k] * float64(x[k])
			}
			data = append(data, math.Exp(ln[up]+sum))
		})
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: &tensor.Dense{Shape: shape, Data: data}})
	}
	curve := make([]float64, order+1)
	for up := range curve {
		curve[up] = rng.NormFloat64() / float64(n)
	}
	pair := []float64{rng.NormFloat64() / 4, 0, rng.NormFloat64() / 4}
	set := make([]int, order)
	for i := range set {
		set[i] = i
	}
	for set[order-1] < n {
		scope := append([]int{}, set...)
		rng.Shuffle(order, func(a, b int) { scope[a], scope[b] = scope[b], scope[a] })
		table(scope, curve)
		following(set)
	}
	for i := range n {
		for j := range i {
			table([]int{i, j}, pair)
		}
	}
	return m
}

// TestInterchangeableAgainstEnumeration: Z, marginals and a joint marginal under evidence, of tables of three to five; a model with
// one entry of one table changed is refused.
func TestInterchangeableAgainstEnumeration(t *testing.T) {
	ctx := t.Context()
	for order := 3; order <= 5; order++ {
		rng := rand.New(rand.NewPCG(uint64(order), 1))
		m := exchanged(rng, 12, order)
		evidence := factorgraph.Evidence{
			Hard: []factorgraph.Observation{{Var: 3, Value: 1}}, Soft: []factorgraph.Likelihood{{Var: 5, Weights: []float64{0.2, 1.5}}},
		}
		net, err := reparam.Build(ctx, m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		part, err := interchangeable(ctx, net)
		if part == nil || err != nil || complete(net) != order {
			t.Fatalf("order %d: not found, tables of %d; %v", order, complete(net), err)
		}
		conditioned, err := net.Condition(evidence)
		if err != nil {
			t.Fatal(err)
		}
		if err := part.Fits(conditioned); err != nil {
			t.Fatal(err)
		}
		value, err := contraction.Part(ctx, problem.New(conditioned, problem.Options{}), part, problem.Want{Marginals: true, Joint: []int{2, 7}})
		if err != nil {
			t.Fatal(err)
		}
		if off := oracle.RelativeError(value.Z.Mant, value.Z.Exp, oracle.Z(m, evidence)); off > 1e-12 {
			t.Errorf("order %d: Z is off by %.2g of it", order, off)
		}
		at := 0
		for v, row := range oracle.Marginals(m, evidence) {
			for x, want := range row {
				got := scaled.Make(value.Marginals.Mant[at], value.Marginals.Exp).Div(value.Z).Float64()
				if at++; math.Abs(got-want) > 1e-12 {
					t.Errorf("order %d: P(%d = %d) is %v, want %v", order, v, x, got, want)
				}
			}
		}
		for cell, x := range value.Joint.Mant {
			e := evidence
			e.Hard = []factorgraph.Observation{{Var: 2, Value: cell >> 1}, {Var: 3, Value: 1}, {Var: 7, Value: cell & 1}}
			if off := oracle.RelativeError(x, value.Joint.Exp, oracle.Z(m, e)); off > 1e-12 {
				t.Errorf("order %d: cell %d of a joint marginal is off by %.2g of it", order, cell, off)
			}
		}

		m.Factors[7].Table.(*tensor.Dense).Data[2] *= 1 + 1e-8
		if net, err = reparam.Build(ctx, m, reparam.Options{}); err != nil {
			t.Fatal(err)
		}
		if part, err = interchangeable(ctx, net); part != nil || err != nil {
			t.Errorf("order %d: found though an entry differs; %v", order, err)
		}
	}
}
