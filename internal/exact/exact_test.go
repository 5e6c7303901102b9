package exact_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/exact"
	"github.com/basetensor/basetensor/internal/oracle"
	"github.com/basetensor/basetensor/internal/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// rounding bounds the error of ln Z and of probabilities for models without cancellation.
const rounding = 1e-9

// network returns a random model with evidence, as a conditioned network.
func network(t *testing.T, seed uint64) (*factorgraph.Model, factorgraph.Evidence, *btn.Network) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 21))
	m := oracle.RandomModel(rng, oracle.Options{
		Variables: 5 + rng.IntN(6), Factors: 6 + rng.IntN(24), MinDomain: 1 + rng.IntN(2), MaxDomain: 2 + rng.IntN(2),
		MaxArity: 2 + rng.IntN(3), MaxStates: 1 << 10, Constant: rng.IntN(4) == 0, Zeros: 0.1 * float64(rng.IntN(3)),
	})
	evidence := oracle.RandomEvidence(rng, m)
	choice := []btn.CoreChoice{btn.CoresAreFactors, btn.CoresAreVariables}[rng.IntN(2)]
	net, err := reparam.Build(context.Background(), m, reparam.Options{Cores: choice})
	if err != nil {
		t.Fatal(err)
	}
	if net, err = net.Condition(evidence); err != nil {
		t.Fatal(err)
	}
	return m, evidence, net
}

// least plans with the smallest budget that a plan is found for, so that there are slices where there can be.
func least(t *testing.T, p *exact.Prepared) (*btn.Tree, btn.Cost) {
	t.Helper()
	var c *btn.Tree
	var plan btn.Cost
	for memory := int64(1 << 20); memory > 64; memory = memory * 3 / 4 {
		next, with, err := p.Plan(context.Background(), memory, 1)
		if err != nil {
			if fault.CodeOf(err) != fault.OverBudget {
				t.Fatal(err)
			}
			break
		}
		if with.Bytes > float64(memory) {
			t.Fatalf("%d bytes were allowed: %+v", memory, with)
		}
		c, plan = next, with
	}
	if c == nil {
		t.Fatal("no plan fits a megabyte")
	}
	return c, plan
}

func TestSlicedTreesAgainstEnumeration(t *testing.T) {
	models, sliced := uint64(400), 0
	if testing.Short() {
		models = 60
	}
	for seed := range models {
		m, evidence, net := network(t, seed)
		want, sign := oracle.LogZ(m, evidence)
		marginals := oracle.Marginals(m, evidence)
		for _, both := range []bool{false, true} {
			p, err := exact.Prepare(context.Background(), net, both)
			if err != nil {
				t.Fatal(err)
			}
			c, plan := least(t, p)
			if c.Count > 1 {
				sliced++
			}
			// Two tasks, cut anywhere, add up: Lemma 5.
			cut := c.Count / 2
			var parts []scaled.Number
			rows := make([][]scaled.Number, len(m.Domains))
			for v, d := range m.Domains {
				rows[v] = make([]scaled.Number, d)
			}
			for _, span := range [][2]int64{{0, cut}, {cut, c.Count}} {
				if span[0] == span[1] {
					continue
				}
				o := exact.Options{From: span[0], To: span[1]}
				if !both {
					z, flops, err := p.Contract(context.Background(), c, o)
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					if flops > plan.Flops*1.001+1 {
						t.Errorf("seed %d: %v flops, planned %v", seed, flops, plan.Flops)
					}
					parts = append(parts, z)
					continue
				}
				z, q, _, err := p.Marginals(context.Background(), c, o)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				parts = append(parts, z)
				for v := range q {
					for a := range q[v] {
						rows[v][a] = rows[v][a].Add(scaled.FromFloat(q[v][a]).Mul(z))
					}
				}
			}
			z := scaled.Sum(parts)
			if (sign == 0) != z.IsZero() {
				t.Errorf("seed %d: Z is %v, want ln Z %v of sign %d", seed, z, want, sign)
				continue
			}
			if sign == 0 {
				continue
			}
			if math.Abs(z.LogAbs()-want) > rounding*(1+math.Abs(want)) {
				t.Errorf("seed %d, %d slices: ln Z %v, want %v", seed, c.Count, z.LogAbs(), want)
			}
			for v := range rows {
				for a := range rows[v] {
					if got := rows[v][a].Div(z).Float64(); both && math.Abs(got-marginals[v][a]) > rounding {
						t.Errorf("seed %d, %d slices: P(x_%d = %d) = %v, want %v", seed, c.Count, v, a, got, marginals[v][a])
					}
				}
			}
		}
	}
	if sliced < int(models)/20 {
		t.Errorf("only %d of %d contractions were sliced", sliced, 2*models)
	}
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
	if _, _, err := q.Contract(context.Background(), c, exact.Options{}); !errors.Is(err, exact.ErrOtherNetwork) {
		t.Errorf("got %v", err)
	}
	if _, _, _, err := p.Marginals(context.Background(), c, exact.Options{}); fault.CodeOf(err) != fault.Internal {
		t.Errorf("marginals of a plan without them: %v", err)
	}
}

func TestThePlanDependsOnShapeBudgetAndSeedAlone(t *testing.T) {
	for seed := range uint64(10) {
		_, _, net := network(t, seed)
		plan := func() *btn.Tree {
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

// TestLossInSimplification: a difference of two outer products, 4e14 − 4e14 under evidence, is nothing that simplification may decide.
func TestLossInSimplification(t *testing.T) {
	const w = 0.12715100689038805
	u := [][]float64{{104485204.30238102, 1, 0, 0.8172020796280227, 0.7443161655610552}, {52242602.15119051, 0.5465320283536962, 0, 0.8172020796280227, 0}}
	v := [][]float64{{0.9551141575184757, 406152818720192.25, 0.053744216549745594, 0.7075028686322238, 0.2676496035038384}, {0.9551141575184757, 406152818720192.25, 0, 0.7075028686322238, 0}}
	cp := &tensor.CP{Shape: []int{5, 5}, Weights: []float64{w, -w}, Vectors: [][]float64{slices.Concat(u...), slices.Concat(v...)}}
	m := &factorgraph.Model{Domains: []int{5, 5}, Factors: []factorgraph.Factor{{Scope: []int{1, 0}, Table: cp}}}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if net, err = net.Condition(factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 1, Value: 3}}}); err != nil {
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
	a, err := p.Answer(context.Background(), c, exact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if off := math.Abs(a.Z.LogAbs() - want); a.Doubt == "" && off > 1e-9 || a.Digits < 10 {
		t.Errorf("ln Z is off by %v, %v digits are said to be lost, doubt %q", off, a.Digits, a.Doubt)
	}
	a, err = exact.Wide(context.Background(), net, false, nil, 0)
	if err != nil || a.Doubt != "" || math.Abs(a.Z.LogAbs()-want) > 1e-12 {
		t.Errorf("in wide numbers: %v, %q, %v", a.Z.LogAbs(), a.Doubt, err)
	}
}
