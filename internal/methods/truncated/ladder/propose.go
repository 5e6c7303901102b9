package ladder

// Proposals: truncated legs along the model's own plans, or along plans for what the evidence leaves.

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Method is method truncated.
var Method = proposal.Method{Name: query.MethodTruncated, Propose: Propose, Grows: true}

// Propose proposes a ladder of estimates by truncated legs: along one or two plans, with growing bonds. The plans are those of the model,
// where evidence enters as a mask, weights of the values of indices, so that all queries share the plans. If the model's plans cannot take
// the evidence, or plans for the network simplified under the evidence are cheaper by far, it searches plans for that network. If
// simplification leaves nothing to sum, it proposes an exact contraction.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	marginals := ask.Marginals
	prepared, err := prepareInTime(ctx, j, marginals)
	if err != nil {
		return nil, err
	}
	if prepared.IsDecided() {
		return exact.ProposeTree(ctx, j, ask)
	}

	if err := prepared.Expression().CheckFit(); err != nil {
		return nil, fmt.Errorf("plan: truncated legs: %w", err)
	}
	if n := len(prepared.Expression().Tables); n > policy.MostTables {
		return nil, fault.New(fault.OverBudget, "plan: truncated legs are for up to %d tables, %d are left",
			policy.MostTables, n)
	}

	// Take the plans of the model, unless they are unfit.
	model, err := proposeModelPlans(ctx, j, marginals)
	if j.Evidence.IsEmpty() && !errors.Is(err, truncated.ErrNoMask) { // there is no other network
		return model, err
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return model, ctxErr
	}

	reason := ""
	if err != nil {
		reason = "plans of truncated legs: the model's do not serve: " + err.Error()
	} else if reason = whyUnfit(ctx, j, model, prepared); reason == "" {
		return model, ctx.Err()
	}

	return proposeUnderEvidence(ctx, j, prepared, marginals, reason)
}

// proposeUnderEvidence proposes a ladder along plans for the network that was simplified under the evidence. They depend on the evidence
// only by the shape that it leaves, and by the variables of its indices, which slices fix. reason says why the model's plans are not taken.
func proposeUnderEvidence(
	ctx context.Context, j *proposal.Job, prepared *truncated.Prepared, marginals bool, reason string,
) (*btn.Assignment, error) {
	const isMasked = false // evidence enters by the simplification
	kind := fmt.Sprint("truncated under evidence, variables ", prepared.DecidingIndices(), truncated.SignsKeySuffix(prepared))
	plan, hit, err := j.RememberComplete(ctx, j.GrowthKey(kind, marginals), prepared.Hypergraph(),
		func(computing context.Context) (*btn.Plan, bool, error) {
			return Plan(computing, prepared, j.Settings, isMasked, marginals)
		})
	if err != nil {
		return nil, err
	}
	assignment := proposal.NewApproximateAssignment(plan, hit, prepared.Expression())
	assignment.Relearned = reason
	return assignment, nil
}

// prepareInTime simplifies the network under the evidence of a query. For method auto, which has other methods, it may take only a share of
// the time for planning.
func prepareInTime(ctx context.Context, j *proposal.Job, marginals bool) (prepared *truncated.Prepared, err error) {
	if !j.IsAuto() {
		return truncated.Simplify(ctx, j.Problem(), marginals)
	}
	err = proposal.RunInTimeShare(ctx, policy.PrepareShare, "the simplification for truncated legs", func(ctx context.Context) (err error) {
		prepared, err = truncated.Simplify(ctx, j.Problem(), marginals)
		return err
	})
	return prepared, err
}

// proposeModelPlans proposes estimates with growing bonds along the plans that depend only on the model. The error is truncated.ErrNoMask
// if the evidence cannot enter as a mask (weights of the values of indices), if the model without evidence leaves nothing to contract, or
// if its entries do not fit float64.
func proposeModelPlans(ctx context.Context, j *proposal.Job, marginals bool) (*btn.Assignment, error) {
	p, err := truncated.SimplifyBase(ctx, j.Problem())
	if err != nil {
		return nil, err
	}
	if _, err := p.Mask(j.Evidence); err != nil {
		return nil, err
	}
	if p.IsDecided() || p.Expression().Unfit != "" { // nothing is left to sum, or entries do not fit float64
		return nil, truncated.ErrNoMask
	}
	const isMasked = true // the plans are for the network without evidence, which enters as a mask
	plan, hit, err := j.RememberComplete(ctx, j.GrowthKey("truncated"+truncated.SignsKeySuffix(p), marginals), p.Hypergraph(),
		func(computing context.Context) (*btn.Plan, bool, error) {
			return Plan(computing, p, j.Settings, isMasked, marginals)
		})
	if err != nil {
		return nil, err
	}
	return proposal.NewApproximateAssignment(plan, hit, p.Expression()), nil
}

// misfit is the ratio of the flops of the model's plan to those of a plan for the evidence above which the query gets a plan for its
// evidence. researchFlops is the flops of a contraction below which that is not worth the search.
// Measured: a quarter and four times of misfit change 1 and 3 of 24 queries, of researchFlops
// none, decision 20.
const (
	misfit        = 8
	researchFlops = 2e8
)

// whyUnfit returns why the model's plans are too expensive for what the evidence of a query leaves. It returns "" if they serve.
func whyUnfit(ctx context.Context, j *proposal.Job, model *btn.Assignment, prepared *truncated.Prepared) string {
	last := &model.Plan.Estimates[len(model.Plan.Estimates)-1]
	bond := Bond(last)
	if last.Cost.Flops < researchFlops { // not worth a search
		return ""
	}

	// Compare with the price of a sweep for the network under the evidence, found almost without a search.
	quick, err := prepared.PriceGreedy(ctx, bond, j.Settings.Memory, j.Settings.Seed)
	if err != nil || last.Cost.Flops <= misfit*quick.Flops { // a network that cannot be planned has no better plan
		return ""
	}
	return fmt.Sprintf("plans of truncated legs: the model's takes %.2g flops at bond %d, one for what the evidence leaves %.2g",
		last.Cost.Flops, bond, quick.Flops)
}

// IsMasked reports whether the plan of truncated legs is that of the model, under which evidence enters as masks.
func IsMasked(p *btn.Plan) bool {
	legs := FirstPart(&p.Estimates[0])
	return legs != nil && legs.Plan.Masked
}

// Verdict is the result of a trial of truncated legs.
type Verdict struct {
	Tried      bool    // it took place
	Late       bool    // there was no time for it
	Lossless   bool    // the plan truncates nothing
	Discarded  float64 // the share of the weight that truncations left out
	Unresolved float64 // the share from which the model is not resolved; +Inf: the trial cannot tell
}

// trialTime is the share of the time for planning that a trial may take.
// Chosen: pilots need the rest.
const trialTime = 1.0 / 3

// trialShare is the share of a budget that a trial may take.
// Chosen: firstShare, and some room where no smaller bond makes it so.
const trialShare = 1.0 / 12

// bondPower is the power of FirstBond over the bond by which Unresolved is larger at a smaller one.
// Measured: a grid of 40×40 leaves out 0.14 at bond 2 and 3e-3 at 4, a three-dimensional model 0.2 and 0.1, decision 26.
const bondPower = 4

// Trial contracts along the first plan of p, without marginals, and reports what truncations discard. The bond is policy.FirstBond, or the
// largest smaller one that takes at most trialShare of the budget. Verdict.Unresolved is the discarded share from which on a model counts
// as unresolved. It is +Inf if half of the budget would hold a larger bond than the trial: the share that a small bond discards does not
// show whether a larger one resolves the model. Bond 4 leaves out 0.024 of a planar glass of 60×60 and 0.017 of a Boltzmann machine, bond 8
// leaves out 1e-5 and 0.005.
func Trial(ctx context.Context, j *proposal.Job, p *btn.Plan, marginals bool) (Verdict, error) {
	first := &p.Estimates[0]
	legs := FirstPart(first)
	if legs == nil { // the first estimate is not by truncated legs
		return Verdict{}, nil
	}
	planning, cancel := proposal.PlanningContext(ctx, trialTime)
	defer cancel()
	prepared, err := preparedFor(planning, j, legs.Plan.Masked, marginals)
	if err != nil {
		return Verdict{Late: planning.Err() != nil}, ctx.Err() // no trial; the first estimate meets the same error and reports it
	}
	if c, err := prepared.Price(ctx, legs.Plan, legs.Bond, marginals); err == nil && c.Lossless && len(p.Estimates) == 1 {
		return Verdict{Tried: true, Lossless: true}, nil
	}

	const noMarginals = false
	mayReachLargerBond := false // estimates may reach a larger bond than the trial
	for bond := policy.FirstBond; bond > 1; bond /= 2 {
		c, err := prepared.Price(ctx, legs.Plan, bond, noMarginals)
		if err != nil || c.Bytes > float64(j.Settings.Memory) {
			continue
		}
		if c.Flops > trialShare*j.Settings.Budget { // too expensive for a trial
			mayReachLargerBond = mayReachLargerBond || c.Flops <= j.Settings.Budget/2
			continue
		}
		answer, err := prepared.Contract(planning, legs.Plan, bond, j.Settings.Memory, noMarginals)
		if err != nil {
			return Verdict{Late: planning.Err() != nil}, ctx.Err()
		}
		v := Verdict{Tried: true, Discarded: answer.Truncation.Discarded, Unresolved: policy.Unresolved}
		v.Unresolved *= math.Pow(float64(policy.FirstBond)/float64(bond), bondPower) // a smaller bond discards more of any model
		if mayReachLargerBond {
			v.Unresolved = math.Inf(1)
		}
		return v, nil
	}
	return Verdict{}, nil // no trial: no bond is cheap enough
}

// preparedFor returns the simplified network under the evidence of the query. If masked is true, the evidence is a mask over the network
// that was simplified without it; otherwise the network is simplified under the evidence. A mask is weights of the values of indices.
func preparedFor(ctx context.Context, j *proposal.Job, masked, marginals bool) (*truncated.Prepared, error) {
	if !masked {
		return truncated.Simplify(ctx, j.Problem(), marginals)
	}
	prepared, err := truncated.SimplifyBase(ctx, j.Problem())
	if err != nil {
		return nil, err
	}
	return prepared.Mask(j.Evidence)
}
