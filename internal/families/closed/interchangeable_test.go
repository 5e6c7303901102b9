package closed

import (
	"context"
	"errors"
	"fmt"
	"math"
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

// exchanged draws a model of n spins in some classes with a table for every set of order variables: a function of the numbers of each
// class's spins in the set that are up after some are turned round, times random vectors for each of its variables. Tables of pairs
// come with it, and, of several classes, a variable with a table of its own alone.
func exchanged(rng *rand.Rand, n, order, classes int) *factorgraph.Model {
	m := &factorgraph.Model{Domains: make([]int, n)}
	turned, class := make([]int, n), make([]int, n)
	for i := range n {
		m.Domains[i], turned[i], class[i] = 2, rng.IntN(2), i%classes
	}
	curves := map[[2][3]int]float64{} // by the numbers of variables and of spins up of each class
	table := func(scope []int, scale float64) {
		shape := make([]int, len(scope))
		main := make([]float64, len(scope))
		var of [2][3]int
		for k, v := range scope {
			shape[k], main[k] = 2, 0.3*rng.NormFloat64()
			of[0][class[v]]++
		}
		var data []float64
		oracle.Each(shape, func(x []int) {
			at, sum := of, 0.0
			for k, v := range scope {
				at[1][class[v]] += x[k] ^ turned[v]
				sum += main[k] * float64(x[k])
			}
			if _, ok := curves[at]; !ok {
				curves[at] = scale * rng.NormFloat64()
			}
			data = append(data, math.Exp(curves[at]+sum))
		})
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: &tensor.Dense{Shape: shape, Data: data}})
	}
	alone := n
	if classes > 1 {
		alone = n - 1
		class[alone] = 0
		table([]int{alone}, 1)
	}
	set := make([]int, order)
	for i := range set {
		set[i] = i
	}
	for set[order-1] < alone {
		scope := append([]int{}, set...)
		rng.Shuffle(order, func(a, b int) { scope[a], scope[b] = scope[b], scope[a] })
		table(scope, 1/float64(n))
		following(set)
	}
	for i := range alone {
		for j := range i {
			table([]int{i, j}, 0.25)
		}
	}
	return m
}

// TestInterchangeableAgainstEnumeration: Z, marginals and a joint marginal under evidence, of tables of three to five over one to three
// classes; a model with one entry of one table changed is refused.
func TestInterchangeableAgainstEnumeration(t *testing.T) {
	ctx := t.Context()
	for order := 3; order <= 5; order++ {
		for classes := 1; classes <= 3; classes++ {
			t.Run(fmt.Sprint(order, classes), func(t *testing.T) { againstEnumeration(ctx, t, order, classes) })
		}
	}
}

func againstEnumeration(ctx context.Context, t *testing.T, order, classes int) {
	rng := rand.New(rand.NewPCG(uint64(order), uint64(classes)))
	m := exchanged(rng, 12, order, classes)
	evidence := factorgraph.Evidence{
		Hard: []factorgraph.Observation{{Var: 3, Value: 1}}, Soft: []factorgraph.Likelihood{{Var: 5, Weights: []float64{0.2, 1.5}}},
	}
	net, err := reparam.Build(ctx, m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	part, err := interchangeable(ctx, net)
	if part == nil || err != nil || dense(net) != order || part.Frame.Levels.D != classes+1 {
		t.Fatalf("order %d: not found, tables of %d; %v, %v", order, dense(net), part, err)
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

	other := *conditioned
	other.Links = slices.Clone(other.Links)
	other.Links[3].T = &tensor.CP{Shape: []int{2, 2}, Weights: []float64{1, 1}, Vectors: [][]float64{nil, {1, 0, 0, 1}}}
	if err := part.Fits(&other); !errors.Is(err, btn.ErrPart) {
		t.Errorf("order %d: it fits vectors on legs that it does not look at: %v", order, err)
	}

	m.Factors[7].Table.(*tensor.Dense).Data[2] *= 1 + 1e-8
	if net, err = reparam.Build(ctx, m, reparam.Options{}); err != nil {
		t.Fatal(err)
	}
	if part, err = interchangeable(ctx, net); part != nil || err != nil {
		t.Errorf("order %d: found though an entry differs; %v", order, err)
	}
}
