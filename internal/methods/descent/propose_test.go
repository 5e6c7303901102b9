package descent_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/descent"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// memory remembers all plans.
type memory map[string]*btn.Plan

func (m memory) Do(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (plan *btn.Plan, hit bool, err error) {
	if m[key] == nil {
		m[key], err = compute(ctx)
		return m[key], false, err
	}
	return m[key], true, nil
}

// TestPathsAreRememberedByTheirLimit: method exact does not find the relaxed path that method auto takes within its budget.
func TestPathsAreRememberedByTheirLimit(t *testing.T) {
	// Every second variable of a star is asked for: the sums before the maxima join all of them.
	const n = 28
	rng := rand.New(rand.NewPCG(1, 5))
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n+1)}
	for v := range n {
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v, n},
			Table: modeltest.Tensor(rng, modeltest.Dense, []int{2, 2}, modeltest.SmallOptions{})})
	}
	set := make([]int, n)
	for v := range set {
		set[v] = v
	}
	net, known := network(t, m), memory{}
	for _, method := range []query.Method{query.MethodAuto, query.MethodExact} {
		s := query.Settings{Method: method, Budget: 3e8, Memory: 1 << 40}.WithDefaults()
		j := &proposal.Job{
			Net: net, Settings: s, Memo: known, Facts: proposal.NewFacts(net, nil), Problems: new(problem.Shared),
		}
		j = j.ForQuery(factorgraph.Evidence{}, net, false)
		plan, _, err := descent.Propose(t.Context(), j, btn.AskMap, set)
		switch {
		case method == query.MethodExact && (err != nil || descent.IsRelaxed(plan)):
			t.Errorf("method exact: %+v, %v", plan, err)
		case method == query.MethodAuto && (err != nil || !descent.IsRelaxed(plan)):
			t.Fatalf("method auto: %+v, %v", plan, err)
		}
	}
}
