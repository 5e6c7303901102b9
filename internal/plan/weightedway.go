package plan

// Weighted samples: states where chains end, where assignments cannot be drawn exactly.

import (
	"context"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/families/bounding"
	"github.com/basetensor/basetensor/internal/families/sampled"
	"github.com/basetensor/basetensor/internal/families/truncated"
	"github.com/basetensor/basetensor/internal/proposal"
	"github.com/basetensor/basetensor/pkg/query"
)

// weighs reports whether what a query asks for may be answered by weighted samples: samples, and beside them Z and marginals alone.
func weighs(q query.Query) bool {
	return q.Samples > 0 && !q.MPE && len(q.Map) == 0 && len(q.Joint) == 0 && !btn.Parametric(q)
}

// weighted assigns chains over all variables, as many as the budget holds and at least one a sample, and bounds. There is one estimate:
// samples are of all chains.
func (a *assigner) weighted(q query.Query) (btn.Assignment, error) {
	terms, model, err := sampled.WalkOf(a.Ctx, a.Problem())
	if err != nil {
		return btn.Assignment{}, err
	}
	own, err := truncated.Of(a.Ctx, a.Problem(), false)
	if err != nil {
		return btn.Assignment{}, err
	}
	if own.Decided() { // nothing is left to draw for
		return a.exactDescents(q)
	}
	key := fmt.Sprintf("%s samples=%d", a.growthKey("weighted, bounds of "+own.Shape(), q.Marginals), q.Samples)
	plan, hit, err := a.RememberWhole(key, terms.Hypergraph(), func(ctx context.Context) (*btn.Plan, bool, error) {
		planning, cancel := proposal.Planning(ctx, 1)
		defer cancel()
		along, whole, err := sampled.Pilot(planning, model, a.Settings)
		if proposal.OutOfTime(ctx, planning, err) {
			along, err = a.quickPilot(ctx, model)
		}
		if err != nil {
			return nil, false, err
		}
		along.Shape = terms.Shape()
		plan, err := sampled.WeightedPlan(model, along, a.Settings, int64(q.Samples), len(a.Net.Variables))
		if err != nil {
			return nil, false, err
		}
		bounds, err := bounding.Propose(planning, own, a.Settings)
		if proposal.OutOfTime(ctx, planning, err) {
			return plan, false, nil
		}
		plan.Estimates = append(plan.Estimates, bounds...)
		return plan, whole, err
	})
	if err != nil {
		return btn.Assignment{}, err
	}
	e := terms.Terms()
	return btn.Assignment{
		Plan: plan, Cache: hit, LnLinks: math.Inf(-1), Hard: proposal.Forbids(e), Unsure: proposal.BeyondRange(e),
		Descents: &btn.Descents{Samples: q.Samples, Seed: q.Seed},
	}, nil
}
