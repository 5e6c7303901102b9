package methods_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/closed"
	exactparts "github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// exact returns the part B of a network, its indices in their own order:
// a poor order, but a valid one.
func exact(t *testing.T, net *btn.Network) btn.Part {
	t.Helper()
	e, err := lower.Build(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	order := make([]int, len(e.Dims))
	for i := range order {
		order[i] = i
	}
	return &exactparts.Elimination{Order: order}
}

// TestExactPart: C = B on random models, both choices of cores,
// all maps, under evidence that the order was not made for.
func TestExactPart(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 6))
		m := modeltest.Small(rng,
			modeltest.SmallOptions{Variables: 7, Factors: 9, MinDomain: 1, MaxDomain: 4, MaxArity: 4,
				Negative: seed%2 == 0, Zeros: 0.1, Constant: true})
		ev := modeltest.Evidence(rng, m)
		positive := oracle.Z(m, ev)
		for _, cores := range []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables} {
			for _, maps := range []query.MapKind{query.MapIdentity, query.MapOrthogonal} {
				net, err := reparam.Build(context.Background(), m,
					reparam.Options{Maps: maps, Cores: cores})
				if err != nil {
					t.Fatal(err)
				}
				part := exact(t, net)
				net, err = net.Condition(ev)
				if err != nil {
					t.Fatal(err)
				}
				v, err := plain(net, part)
				if err != nil {
					t.Fatal(err)
				}
				want, _ := positive.Float64()
				if diff := math.Abs(v.Z.Float64() - want); !(diff <= 1e-9*math.Abs(want)+1e-12) {
					t.Errorf("seed %d, cores %s, maps %s: Z = %v, want %v",
						seed, cores, maps, v.Z.Float64(), want)
				}
			}
		}
	}
}

// TestEdgeModels contracts what has no legs, no factors or no mass, exactly;
// a network without legs also as rank-one.
func TestEdgeModels(t *testing.T) {
	table := func(scope, shape []int, data ...float64) factorgraph.Factor {
		return factorgraph.Factor{Scope: scope, Table: &tensor.Dense{Shape: shape, Data: data}}
	}
	none := []int{}
	for _, c := range []struct {
		name  string
		model factorgraph.Model
		z     float64
	}{
		{"nothing", factorgraph.Model{}, 1},
		{"no factors", factorgraph.Model{Domains: []int{2, 3}}, 6},
		{"order zero", factorgraph.Model{Factors: []factorgraph.Factor{table(none, none, 3),
			table(none, none, -2)}}, -6},
		{"orders zero and one",
			factorgraph.Model{Domains: []int{2, 3},
				Factors: []factorgraph.Factor{table(none, none, 0.5),
					table([]int{1}, []int{3}, 1, 2, 4)}}, 7},
		{"domains of size one",
			factorgraph.Model{Domains: []int{1, 1, 2},
				Factors: []factorgraph.Factor{table([]int{0, 2, 1}, []int{1, 2, 1}, 3, 4)}}, 7},
		{"disconnected", factorgraph.Model{Domains: []int{2, 2, 2, 2},
			Factors: []factorgraph.Factor{
				table([]int{0, 1}, []int{2, 2}, 1, 2, 3, 4), table([]int{3, 2}, []int{2, 2}, 1, 1,
					1,
					2)}}, 50},
		{"zero partition", factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{
			table([]int{0, 1}, []int{2, 2}, 1, 0, 0, 1), table([]int{0, 1}, []int{2, 2}, 0, 1, 1,
				0)}}, 0},
		{"zero constant", factorgraph.Model{Domains: []int{2},
			Factors: []factorgraph.Factor{table(none, none, 0)}}, 0},
		{"negative entries", factorgraph.Model{Domains: []int{2, 2},
			Factors: []factorgraph.Factor{table([]int{0, 1}, []int{2, 2}, 1, -2, -3, 1)}}, -3},
	} {
		for _, cores := range []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables} {
			net, err := reparam.Build(context.Background(), &c.model, reparam.Options{Cores: cores})
			if err != nil {
				t.Fatal(err)
			}
			parts := []btn.Part{exact(t, net)}
			if len(net.Dims) == 0 {
				parts = append(parts, &closed.RankOne{Frame: &btn.Frame{}})
			}
			for _, part := range parts {
				v, err := plain(net, part)
				if err != nil {
					t.Fatal(err)
				}
				if z := v.Z.Float64(); math.Abs(z-c.z) > 1e-13 {
					t.Errorf("%s, cores %s, %s: Z = %v, want %v",
						c.name, cores, part.Class(), z, c.z)
				}
			}
		}
	}
}

// TestExactOverBudget: five variables of 20 values in one
// table of 25 MB are refused under 1 MB, with a number.
func TestExactOverBudget(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{20, 20, 20, 20, 20}}
	rng := rand.New(rand.NewPCG(8, 8))
	for i := range 5 {
		for k := range i {
			m.Factors = append(m.Factors,
				factorgraph.Factor{Scope: []int{i, k},
					Table: modeltest.Tensor(rng, modeltest.Dense, []int{20, 20}, modeltest.SmallOptions{})})
		}
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = contraction.Part(context.Background(), problem.New(net, problem.Options{Memory: 1 << 20}),
		exact(t, net), btn.Want{})
	if !errors.Is(err, sumproduct.ErrOverBudget) || fault.CodeOf(err) != fault.OverBudget {
		t.Errorf("got %v", err)
	}
}

// The paper's example, reparameterised and contracted exactly.
func ExamplePart() {
	m := &factorgraph.Model{
		Domains: []int{2, 2, 2, 2, 2},
		Factors: []factorgraph.Factor{
			{Scope: []int{0, 1, 2},
				Table: &tensor.Dense{Shape: []int{2, 2, 2},
					Data: []float64{1, 2, 3, 4, 5, 6, 7, 8}}},
			{Scope: []int{0, 3, 4},
				Table: &tensor.Dense{Shape: []int{2, 2, 2},
					Data: []float64{8, 7, 6, 5, 4, 3, 2, 1}}},
		},
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	part := &exactparts.Elimination{Order: []int{4, 3, 2, 1, 0}}
	v, err := contraction.Part(context.Background(), problem.New(net, problem.Options{}), part,
		btn.Want{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("Z = %.6g\n", v.Z.Float64())
	// Output: Z = 520
}
