package exact_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// network returns a random model with evidence, as a conditioned network.
func network(t *testing.T, seed uint64) (*factorgraph.Model, factorgraph.Evidence, *btn.Network) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 21))
	m := modeltest.Small(rng, modeltest.SmallOptions{
		Variables: 5 + rng.IntN(6), Factors: 6 + rng.IntN(24), MinDomain: 1 +
			rng.IntN(2), MaxDomain: 2 + rng.IntN(2),
		MaxArity: 2 + rng.IntN(3), MaxStates: 1 << 10, Constant: rng.IntN(4) == 0,
		Zeros: 0.1 * float64(rng.IntN(3)),
	})
	evidence := modeltest.Evidence(rng, m)
	choice := []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables}[rng.IntN(2)]
	net, err := reparam.Build(context.Background(), m, reparam.Options{Cores: choice})
	if err != nil {
		t.Fatal(err)
	}
	if net, err = net.Condition(evidence); err != nil {
		t.Fatal(err)
	}
	return m, evidence, net
}

func TestAPlanForAnotherNetworkIsRefused(t *testing.T) {
	_, _, one := network(t, 1)
	_, _, two := network(t, 4)
	p, err := exact.Prepare(context.Background(), one, false)
	if err != nil {
		t.Fatal(err)
	}
	q, err := exact.Prepare(context.Background(), two, false)
	if err != nil {
		t.Fatal(err)
	}
	if p.Shape() == q.Shape() {
		t.Fatal("the two networks have one shape")
	}
	c, _, err := p.Plan(context.Background(), 1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := q.Contract(context.Background(), c, exact.Options{}); !errors.Is(err,
		exact.ErrOtherNetwork) {
		t.Errorf("got %v", err)
	}
	if _, _, _, err := p.Marginals(context.Background(), c,
		exact.Options{}); fault.CodeOf(err) != fault.Internal {
		t.Errorf("marginals of a plan without them: %v", err)
	}
}

func TestThePlanDependsOnShapeBudgetAndSeedAlone(t *testing.T) {
	for seed := range uint64(10) {
		_, _, net := network(t, seed)
		plan := func() *exact.Tree {
			p, err := exact.Prepare(context.Background(), net, false)
			if err != nil {
				t.Fatal(err)
			}
			c, _, err := p.Plan(context.Background(), 1<<16, 7)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		a, b := plan(), plan()
		if a.Shape != b.Shape || a.Count != b.Count || len(a.Merges) != len(b.Merges) {
			t.Fatalf("seed %d: two plans, %+v and %+v", seed, a, b)
		}
		for k := range a.Merges {
			if a.Merges[k] != b.Merges[k] {
				t.Fatalf("seed %d: merge %d differs", seed, k/2)
			}
		}
	}
}

// TestLossInSimplification: a difference of two outer products,
// 4e14 − 4e14 under evidence, is nothing that simplification may decide.
func TestLossInSimplification(t *testing.T) {
	const w = 0.12715100689038805
	u := [][]float64{{104485204.30238102, 1, 0, 0.8172020796280227, 0.7443161655610552},
		{52242602.15119051, 0.5465320283536962, 0, 0.8172020796280227, 0}}
	v := [][]float64{{0.9551141575184757, 406152818720192.25, 0.053744216549745594,
		0.7075028686322238, 0.2676496035038384},
		{0.9551141575184757, 406152818720192.25, 0, 0.7075028686322238, 0}}
	cp := &tensor.CP{Shape: []int{5, 5}, Weights: []float64{w, -w},
		Vectors: [][]float64{slices.Concat(u...), slices.Concat(v...)}}
	m := &factorgraph.Model{Domains: []int{5, 5},
		Factors: []factorgraph.Factor{{Scope: []int{1, 0}, Table: cp}}}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if net, err = net.Condition(factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 1,
		Value: 3}}}); err != nil {
		t.Fatal(err)
	}
	const want = -3.3993367935209067
	p, err := exact.Prepare(context.Background(), net, false)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := p.Plan(context.Background(), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.AnswerSlices(context.Background(), c, exact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if off := math.Abs(a.Z.LogAbs() - want); a.Doubt == "" && off > 1e-9 || a.Digits < 10 {
		t.Errorf("ln Z is off by %v, %v digits are said to be lost, doubt %q",
			off, a.Digits, a.Doubt)
	}
	a, err = exact.ContractWide(context.Background(), net, false, nil, 0)
	if err != nil || a.Doubt != "" || math.Abs(a.Z.LogAbs()-want) > 1e-12 {
		t.Errorf("in wide numbers: %v, %q, %v", a.Z.LogAbs(), a.Doubt, err)
	}
}
