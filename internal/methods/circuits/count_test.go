package circuits

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestCount: the search of a query for Z alone is made for the plan and not again, and Z is the sum over all assignments. If nothing else
// answers, a contract-worker makes it.
func TestCount(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 42))
	const n = 12
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n)}
	for range 30 {
		data := slices.Repeat([]float64{1}, 8)
		data[rng.IntN(8)] = 0
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: rng.Perm(n)[:3], Table: &tensor.Dense{Shape: []int{2, 2, 2}, Data: data}})
	}
	z := 0.0
	for x := range 1 << n {
		term := 1.0
		for _, f := range m.Factors {
			at := 0
			for _, v := range f.Scope {
				at = 2*at + x>>v&1
			}
			term *= f.Table.(*tensor.Dense).Data[at]
		}
		z += term
	}
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}

	j := &proposal.Job{
		Facts: proposal.NewFacts(net, nil), Net: net, Conditioned: net,
		Problems: &problem.Shared{}, Options: problem.Options{Memory: 1 << 31},
		Settings: query.Settings{Method: query.MethodExact, Memory: 1 << 31},
	}
	const work = triedWork / 4
	if found, err := tryCount(t.Context(), j, work); found != nil || err != nil {
		t.Errorf("others may follow: %v, %v", found, err)
	}
	j.WantsOnlyZ = true
	found, err := tryCount(t.Context(), j, work)
	if err != nil {
		t.Fatal(err)
	}
	parts := found.Plan.Estimates[0].Parts
	count := parts[0].(*WeightedCount)
	if len(parts) != 1 || count.Fits(net) != nil || found.Cost.Flops != policy.CircuitFlops*work {
		t.Errorf("%+v, cost %+v", found.Plan, found.Cost)
	}

	for _, mant := range []float64{math.NaN(), math.Inf(1), -1} {
		if (&WeightedCount{Work: work, Known: &scaled.Number{Mant: mant}}).Fits(net) == nil {
			t.Errorf("a sum of %v fits", mant)
		}
	}
	if (&WeightedCount{}).Fits(net) == nil || (&WeightedCount{Work: 1}).Fits(&btn.Network{}) == nil {
		t.Error("a search of no steps, or of a network without variables, fits")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	value, err := count.Contract(ended, j.Problem(), btn.Want{})
	if err != nil {
		t.Fatalf("the search is made again: %v", err)
	}
	again, err := (&WeightedCount{Work: work}).Contract(t.Context(), j.Problem(), btn.Want{})
	if got := value.Z.Float64(); z == 0 || math.Abs(got-z) > 1e-12*z || again.Z != value.Z || err != nil {
		t.Errorf("Z is %v, again %v, all assignments sum to %v: %v", got, again.Z, z, err)
	}
	if _, err := count.Contract(t.Context(), j.Problem(), btn.Want{Marginals: true}); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("marginals: %v", err)
	}
	if found, err := tryCount(t.Context(), j, 1); found != nil || err != nil {
		t.Errorf("a search of one step: %v, %v", found, err)
	}
	j.Settings.Memory = 64 // no tree fits
	if found, err = Propose(t.Context(), j, proposal.Ask{Next: func(context.Context) (*btn.Assignment, error) {
		return nil, fault.New(fault.OverBudget, "no tree")
	}}); err != nil || found.Plan.Estimates[0].Parts[0].(*WeightedCount).Work != countWork {
		t.Errorf("nothing else answers: %+v, %v", found, err)
	}
}
