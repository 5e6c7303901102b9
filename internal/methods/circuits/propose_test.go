package circuits

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestLogicIsSearchedBeforeItIsSimplified: a formula whose search ends is never simplified as a whole; without a search it is, once.
func TestLogicIsSearchedBeforeItIsSimplified(t *testing.T) {
	j := randomClauses(t)
	simplified := func() bool { // the slot has a value that this does not make
		known := true
		proposal.Fact(t.Context(), j.Facts, isWideSlot{circuitBytes}, func() (bool, error) {
			known = false
			return false, errors.New("not known")
		})
		return known
	}
	if plan, err := compile(t.Context(), j, j.Net, circuitProbe); err != nil || plan.Estimates[0].Cost.Edges == 0 {
		t.Fatal(plan, err)
	}
	if simplified() {
		t.Error("simplified as a whole though a search found a circuit")
	}
	if _, err := compile(t.Context(), j, j.Net, 0); !errors.Is(err, errNoCircuit) || !simplified() {
		t.Errorf("without a search: %v, simplified %v", err, simplified())
	}
}

// randomClauses returns a job about a formula of 270 random clauses of three literals over 70 variables, without evidence.
func randomClauses(t *testing.T) *proposal.Job {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 40))
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, 70)}
	for range 270 {
		data := slices.Repeat([]float64{1}, 8)
		data[rng.IntN(8)] = 0
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: rng.Perm(70)[:3], Table: &tensor.Dense{Shape: []int{2, 2, 2}, Data: data}})
	}
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &proposal.Job{
		Net: net, Conditioned: net, Settings: query.Settings{Memory: 1 << 31},
		Facts: proposal.NewFacts(net, nil), Problems: new(problem.Shared),
	}
}

// detachedMemo computes under a context that does not end with the job's, as if another job waited for the plan, too.
type detachedMemo struct{}

func (detachedMemo) Do(
	ctx context.Context, _ string, compute func(context.Context) (*btn.Plan, error),
) (plan *btn.Plan, hit bool, err error) {
	plan, err = compute(context.WithoutCancel(ctx))
	return plan, false, err
}

// TestACompilationOutlivesItsJob: the computation of a plan goes on under the memo's context, although the context of the job has ended.
// The search spends its work, and goes on because an elimination takes longer.
func TestACompilationOutlivesItsJob(t *testing.T) {
	const work = 1 << 16 // a search that ends here finds no circuit
	j := randomClauses(t)
	j.Settings = j.Settings.WithDefaults()
	j.Memo = detachedMemo{}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if plan, _, err := modelPlan(ended, j, work, false); err != nil || plan.Estimates[0].Cost.Edges == 0 {
		t.Errorf("the plan under a context that has not ended: %v, %v", plan, err)
	}
}

// TestAnEndedJobIsNoCheapRival: the price of an elimination under a context that has ended is an error, and no reason for a search to end
// without a circuit.
func TestAnEndedJobIsNoCheapRival(t *testing.T) {
	j := randomClauses(t)
	j.Settings = j.Settings.WithDefaults()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if steps, err := rivalSteps(ended, j); !errors.Is(err, context.Canceled) || !math.IsInf(askRival(ended, j), 1) {
		t.Errorf("an ended context: %v steps, %v; the search hears of %v", steps, err, askRival(ended, j))
	}
	if steps, err := rivalSteps(t.Context(), j); err != nil || steps <= 0 || askRival(t.Context(), j) != steps {
		t.Errorf("a context that goes on: %v steps, %v; the search hears of %v", steps, err, askRival(t.Context(), j))
	}
}
