package plan

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/circuits"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/reference"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// clauses is a random formula of three-variable clauses, with weights, whose elimination costs more than policy.HeavyFlops.
func clauses(seed uint64, n, count int) *factorgraph.Model {
	rng := rand.New(rand.NewPCG(seed, 40))
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n)}
	for range count {
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: rng.Perm(n)[:3], Table: clause(3, rng.IntN(8))})
	}
	for v := range n {
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v},
			Table: &tensor.Dense{Shape: []int{2}, Data: []float64{rng.Float64(), rng.Float64()}}})
	}
	return m
}

// kept is a memo in a map.
type kept map[string]*btn.Plan

func (k kept) Do(ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error)) (*btn.Plan, bool, error) {
	if p, ok := k[key]; ok {
		return p, true, nil
	}
	p, err := compute(ctx)
	if err == nil {
		k[key] = p
	}
	return p, false, err
}

// TestModelsThatComeAgainHaveACircuit: the first query of a model of clauses has a tree, the next one compiles a circuit, which says
// the same, and all later ones find it, whatever their evidence is.
func TestModelsThatComeAgainHaveACircuit(t *testing.T) {
	net, err := reparam.Build(t.Context(), clauses(1, 44, 100), reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	memo := kept{}
	ask := func(d btn.Demand, memo proposal.Memo) (btn.Assignment, btn.Value) {
		t.Helper()
		all, err := Assign(t.Context(), net, []btn.Demand{d}, query.Settings{Method: query.MethodExact}, memo, nil)
		if err != nil {
			t.Fatal(err)
		}
		if all[0].Error != nil {
			t.Fatal(all[0].Error.Message)
		}
		under, err := net.Condition(d.Evidence)
		if err != nil {
			t.Fatal(err)
		}
		part := all[0].Plan.Estimates[0].Parts[0]
		value, err := contraction.Part(t.Context(), problem.New(under, problem.Options{}), part, btn.Want{})
		if err != nil {
			t.Fatal(err)
		}
		return all[0], value
	}
	isCircuit := func(a btn.Assignment) bool {
		_, ok := a.Plan.Estimates[0].Parts[0].(*circuits.Circuit)
		return ok
	}

	for k, want := range []struct {
		circuit bool
		cache   string
	}{{false, btn.CacheMiss}, {true, btn.CacheMiss}, {true, btn.CacheHit}, {true, btn.CacheHit}} {
		var d btn.Demand
		if k > 0 {
			d.Evidence = factorgraph.Observe(map[int]int{k: 1})
		}
		got, value := ask(d, memo)
		if isCircuit(got) != want.circuit || got.Cache != want.cache {
			t.Errorf("query %d: circuit %v, cache %q", k, isCircuit(got), got.Cache)
		}
		if k != 1 {
			continue
		}
		tree, exact := ask(d, nil)
		if isCircuit(tree) {
			t.Fatal("a query of its own has a circuit: there is nothing to compare with")
		}
		if off := value.Z.Sub(exact.Z).Div(exact.Z).Float64(); !(math.Abs(off) < 1e-11) {
			t.Errorf("query %d: Z = %v, by a tree %v", k, value.Z, exact.Z)
		}
	}
}

// TestShortSearchBeforeATree: the first query of a model of clauses has a circuit where a short search finds one and the order that
// is known costs much, and a tree where that costs little.
func TestShortSearchBeforeATree(t *testing.T) {
	for _, c := range []struct {
		vars, clauses int
		circuit       bool
	}{{70, 270, true}, {44, 100, false}} {
		net, err := reparam.Build(t.Context(), clauses(1, c.vars, c.clauses), reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		memo := kept{}
		all, err := Assign(t.Context(), net, []btn.Demand{{}}, query.Settings{Method: query.MethodExact}, memo, nil)
		if err != nil || all[0].Error != nil {
			t.Fatal(err, all[0].Error)
		}
		if _, ok := all[0].Plan.Estimates[0].Parts[0].(*circuits.Circuit); ok != c.circuit {
			t.Errorf("%d clauses over %d variables: %T", c.clauses, c.vars, all[0].Plan.Estimates[0].Parts[0])
		}
		if most := 2; c.circuit && len(memo) > most {
			t.Errorf("%d plans were looked for, an order and a circuit are %d", len(memo), most)
		}
	}
}

// TestFormulasHaveNoTreeForAllEvidence: a model of clauses whose order costs much is simplified.
func TestFormulasHaveNoTreeForAllEvidence(t *testing.T) {
	net, err := reparam.Build(t.Context(), clauses(1, 44, 92), reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := Assign(t.Context(), net, []btn.Demand{{}}, query.Settings{Method: query.MethodExact}, nil, nil)
	if err != nil || all[0].Error != nil {
		t.Fatal(err, all[0].Error)
	}
	if _, ok := all[0].Plan.Estimates[0].Parts[0].(*exact.Junction); ok {
		t.Error("a formula has a tree for all evidence")
	}
}

// TestASearchGoesOnWhereATreeIsFar: a planning formula is summed by the search that a short one before a tree begins.
func TestASearchGoesOnWhereATreeIsFar(t *testing.T) {
	net, err := reparam.Build(t.Context(), reference.Read(t, "logic/ra.cnf.uai.gz"), reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	memo := kept{}
	all, err := Assign(t.Context(), net, []btn.Demand{{}}, query.Settings{Method: query.MethodExact}, memo, nil)
	if err != nil || all[0].Error != nil {
		t.Fatal(err, all[0].Error)
	}
	if _, ok := all[0].Plan.Estimates[0].Parts[0].(*circuits.Circuit); !ok || len(memo) > 2 {
		t.Errorf("%T, and %d plans were looked for", all[0].Plan.Estimates[0].Parts[0], len(memo))
	}
}

// TestRecurringModelsHaveACircuitAtOnce: under Recurring the first query of a model of clauses compiles the circuit that the second one
// would.
func TestRecurringModelsHaveACircuitAtOnce(t *testing.T) {
	net, err := reparam.Build(t.Context(), clauses(1, 44, 100), reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	memo := kept{}
	for k, cache := range []string{btn.CacheMiss, btn.CacheHit} {
		all, err := Assign(proposal.WithRecurringNetwork(t.Context()), net, []btn.Demand{{}}, query.Settings{Method: query.MethodExact},
			memo, nil)
		if err != nil || all[0].Error != nil {
			t.Fatal(err, all[0].Error)
		}
		if _, ok := all[0].Plan.Estimates[0].Parts[0].(*circuits.Circuit); !ok || all[0].Cache != cache {
			t.Errorf("query %d: %T, cache %q", k, all[0].Plan.Estimates[0].Parts[0], all[0].Cache)
		}
	}
}

// TestNoShortSearchAmongTables: a model of whose factors a fifth are tables without zeros is looked for a tree first.
func TestNoShortSearchAmongTables(t *testing.T) {
	m := clauses(1, 70, 270)
	for v := range 69 {
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v, v + 1},
			Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 4}}})
	}
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	memo := kept{}
	all, err := Assign(t.Context(), net, []btn.Demand{{}}, query.Settings{Method: query.MethodExact}, memo, nil)
	if err != nil || all[0].Error != nil {
		t.Fatal(err, all[0].Error)
	}
	if len(memo) < 2 {
		t.Fatal("the order is cheap: nothing is shown")
	}
	if _, ok := all[0].Plan.Estimates[0].Parts[0].(*circuits.Circuit); ok && len(memo) < 3 {
		t.Error("a circuit was found before a tree was looked for")
	}
}

// clause is 0 at one point and 1 elsewhere.
func clause(n, at int) *tensor.Dense {
	t := &tensor.Dense{Shape: slices.Repeat([]int{2}, n), Data: make([]float64, 1<<n)}
	for i := range t.Data {
		t.Data[i] = 1
	}
	t.Data[at] = 0
	return t
}
