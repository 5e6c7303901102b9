package plan

// Which families of estimates method auto answers with where it does not answer exactly: decision 26.

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/bounding"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/regions"
	"github.com/basetensor/basetensor/internal/methods/sampled"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/methods/truncated/ladder"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
)

// contractionTime is the part of the time for planning that contractions may take where components are sampled as well.
// Chosen: they take two thirds of it where nothing else runs.
const contractionTime = 0.6

// leastShare is the part of a budget that the family gets which has little to say, unclearShare the part of samples where nothing
// speaks for either.
// Chosen: one estimate of the other family, to be held against.
const (
	leastShare   = 1.0 / 8
	unclearShare = 1.0 / 2
)

// chosen assigns what grows, of one family or of two: contractions are truncated legs, or regions where those do not fit; what a
// trial of the first truncation leaves out and how far the weights of a pilot spread say how much of the budget goes to components that
// are sampled. Networks that cannot be sampled have contractions alone, and those that cannot be contracted samples.
func (a *assigner) chosen(d btn.Demand) (*btn.Assignment, error) {
	if a.Settings.Bond > 0 {
		return a.contractions(d)
	}

	if structured, err := sampled.ProposeStructure(a.Job, d.Marginals); structured != nil || err != nil {
		if structured != nil {
			proposal.Note(a.Ctx, proposal.Rule, "most of the interaction is of low rank: samples from that structure have the whole budget")
		}
		return structured, err
	}
	chains, refused := sampled.ChainsInTime(a.Job, d.Marginals)
	if err := a.Ctx.Err(); err != nil {
		return nil, err
	}
	if refused != nil {
		proposal.Note(a.Ctx, proposal.Rule, "no components are drawn, contractions have the whole budget: %v", refused)
		return a.contractions(d)
	}
	if chains.Prepared.Decided() {
		proposal.Note(a.Ctx, proposal.Rule, "nothing is left to draw: contractions have the whole budget")
		return a.contractions(d)
	}

	limits, cutBefore := a.Settings, a.CutShort()
	limits.Budget *= 1 - leastShare
	contracted, err := a.under(a.Under(proposal.Earlier(a.Ctx, contractionTime), limits)).contractions(d)
	isShort := a.CutShort() > cutBefore
	switch {
	case a.Ctx.Err() != nil:
		return contracted, a.Ctx.Err()
	case err == nil && !contracted.Plan.Grows():
		return contracted, nil
	case err != nil:
		samples, refused := sampled.Propose(a.Job, proposal.Ask{Marginals: d.Marginals})
		if refused != nil {
			return contracted, err
		}
		samples.Warnings = append(samples.Warnings, "components are sampled alone: "+err.Error())
		return samples, nil
	}

	// A model's own plan serves all evidence: where it resolves the model it is not divided, for that would be done for each evidence anew.
	ladderPlan := contracted.Plan
	isShared := ladder.Masked(ladderPlan) && !d.Evidence.IsEmpty()
	var mixture *btn.Plan // once it was needed
	mix := func(ctx context.Context) (*btn.Plan, bool, error) {
		if mixture != nil {
			return mixture, !isShort, nil
		}
		planning, cancel := proposal.Planning(ctx, 1)
		defer cancel()
		divided, isWhole, err := a.mixed(planning, ladderPlan, chains, d, isShared)
		if proposal.OutOfTime(ctx, err) {
			isWhole = false
			divided, err = a.hasty(ctx, ladderPlan, chains, d)
		}
		mixture, isShort = divided, isShort || !isWhole
		return mixture, !isShort, err
	}
	take := func(plan *btn.Plan, hit string) *btn.Assignment {
		contracted.Plan = plan
		if hit != btn.CacheHit {
			contracted.Cache = hit
		}
		return contracted
	}
	if isShared {
		unmasked, err := truncated.OfBase(a.Ctx, a.Problem())
		if err != nil {
			return nil, err
		}
		key := a.GrowthKey("families under evidence"+describe(ladderPlan), d.Marginals)
		plan, hit, err := a.RememberWhole(key, unmasked.Hypergraph(), mix)
		if err != nil {
			return nil, err
		}
		if !draws(plan) {
			return take(plan, hit), nil
		}
	}
	boundsKey, err := bounding.Key(a.Job, d.Marginals)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprintf("families %s masked=%t indices %v%s",
		describe(ladderPlan), ladder.Masked(ladderPlan), chains.Prepared.Indices(), boundsKey)
	plan, hit, err := a.RememberWhole(a.GrowthKey(key, d.Marginals), chains.Prepared.Hypergraph(), mix)
	if err != nil {
		return nil, err
	}
	return take(plan, hit), nil
}

// draws reports whether a plan has sampled components.
func draws(p *btn.Plan) bool {
	return slices.ContainsFunc(p.Estimates, func(e btn.Estimate) bool { return e.Rule == btn.Pooled })
}

// describe lists what a ladder is, for the key of what is made of it.
func describe(p *btn.Plan) string {
	s := ""
	for k := range p.Estimates {
		e := &p.Estimates[k]
		s += fmt.Sprintf(" %s %g %d %g", e.Track, e.Level, len(e.Parts), e.Cost.Flops)
	}
	return s
}

// contractions assigns truncated legs, or regions where they do not fit.
func (a *assigner) contractions(d btn.Demand) (*btn.Assignment, error) {
	ask := proposal.Ask{Marginals: d.Marginals}
	found, refused := proposal.Way{Name: "truncated legs", Propose: ladder.Propose}.Ask(a.Job, ask)
	if fault.CodeOf(refused) != fault.OverBudget {
		return found, refused
	}
	found, err := a.orExact(proposal.Way{Name: "regions", Propose: regions.Propose}.Ask, d)
	if err != nil && a.Ctx.Err() == nil {
		err = fault.New(fault.CodeOf(err), "%w; %w", refused, err)
	}
	return found, err
}

// drawable is the variance of weights, relative to their mean, up to which components alone are drawn where truncation does not resolve
// a model.
// Chosen: a thousand components then have a standard error of a tenth.
const drawable = 10.0

// mixed divides the budget between the contractions of a plan, components that are sampled, and bounds; not where a trial says that the
// contractions resolve the model and alone is set. Where the time for planning ends before all is known, whole is false.
func (a *assigner) mixed(
	ctx context.Context, from *btn.Plan, c *sampled.Chains, d btn.Demand, alone bool,
) (plan *btn.Plan, whole bool, err error) {
	s := a.Settings
	legs, err := ladder.Trial(ctx, a.Job, from, d.Marginals)
	if err != nil || legs.Lossless {
		return from, true, err
	}
	if alone && legs.Tried && legs.Discarded <= policy.Resolved {
		plan, err = bounding.Beside(ctx, a.Job, from)
		return plan, true, err
	}
	half := s
	half.Budget /= 2
	along, whole, err := sampled.Choose(ctx, c, half)
	if err != nil {
		return nil, false, err
	}
	whole = whole && !legs.Late
	share := shareOfSamples(ctx, legs, along)

	plan = &btn.Plan{Method: from.Method, Accuracy: s.Accuracy, Warnings: from.Warnings}
	contracted, spent := upTo(from.Estimates, (1-share)*s.Budget)
	if spent > (1-leastShare)*s.Budget { // the first estimate alone
		contracted, spent, share = nil, 0, 1
	}
	rest := s
	rest.Budget = max(share*s.Budget, s.Budget-spent)
	components, err := sampled.Components(c, along, rest, d.Marginals)
	if fault.CodeOf(err) == fault.OverBudget {
		return from, whole, nil
	}
	if err != nil {
		return nil, false, err
	}
	if share > 1.0/2 {
		plan.Method = sampled.Method.Name
	}
	plan.Estimates = merged(contracted, components)
	return bounding.Insert(ctx, a.Job, 1, plan, whole)
}

// shareOfSamples is the part of the budget that components get beside contractions: by what a trial of truncated legs leaves out, and by
// how far the weights of the components of a pilot spread.
func shareOfSamples(ctx context.Context, legs ladder.Verdict, along sampled.Sampling) float64 {
	pilot := along.About()
	proposal.Note(ctx, "samples", "by %s, weights with a variance of %.2g times their mean, squared; %d hidden modes",
		pilot.Kind, pilot.Spread, pilot.Modes)
	if !legs.Tried {
		proposal.Note(ctx, proposal.Rule, "there is no trial of truncated legs: samples have %g of the budget", unclearShare)
		return unclearShare
	}
	proposal.Note(ctx, "truncated legs", "a trial leaves out %.2g of the weight", legs.Discarded)
	switch {
	case legs.Discarded <= policy.Resolved && pilot.Modes == 0:
		proposal.Note(ctx, proposal.Rule, "that is at most %.2g, and there is no hidden mode: samples have %g of the budget",
			policy.Resolved, leastShare)
		return leastShare
	case legs.Discarded >= legs.Unresolved && pilot.Spread <= drawable:
		proposal.Note(ctx, proposal.Rule, "that is at least %.2g, and the weights are even: samples have %g of the budget",
			legs.Unresolved, 1-leastShare)
		return 1 - leastShare
	}
	proposal.Note(ctx, proposal.Rule, "nothing speaks clearly for either: samples have %g of the budget", unclearShare)
	return unclearShare
}

// hasty is mixed without a trial, proposals and bounds: chains from a small pilot have half of the budget.
func (a *assigner) hasty(ctx context.Context, from *btn.Plan, c *sampled.Chains, d btn.Demand) (*btn.Plan, error) {
	components, err := sampled.Hasty(ctx, a.Job, c, d.Marginals)
	if fault.CodeOf(err) == fault.OverBudget {
		return from, nil
	}
	if err != nil {
		return nil, err
	}
	contracted, _ := upTo(from.Estimates, a.Settings.Budget/2)
	return &btn.Plan{
		Method: from.Method, Accuracy: a.Settings.Accuracy, Warnings: from.Warnings, Estimates: merged(contracted, components),
	}, nil
}

// upTo returns the first estimates that a budget holds, one at least, and what they take.
func upTo(estimates []btn.Estimate, budget float64) (some []btn.Estimate, spent float64) {
	for k := range estimates {
		cost := work(&estimates[k])
		if k > 0 && spent+cost > budget {
			return estimates[:k], spent
		}
		spent += cost
	}
	return estimates, spent
}

// work is what an estimate takes in flops of truncated legs.
func work(e *btn.Estimate) float64 {
	if e.Rule == btn.LogLinear {
		return policy.RegionRate * e.Cost.Flops
	}
	return e.Cost.Flops
}

// merged is two sequences in one: whichever has taken less by its next estimate goes on, so that the cheap ones of both come first.
func merged(a, b []btn.Estimate) []btn.Estimate {
	out := make([]btn.Estimate, 0, len(a)+len(b))
	var spentA, spentB float64
	for len(a)+len(b) > 0 {
		nextA, nextB := math.Inf(1), math.Inf(1)
		if len(a) > 0 {
			nextA = spentA + work(&a[0])
		}
		if len(b) > 0 {
			nextB = spentB + work(&b[0])
		}
		if nextA <= nextB {
			out, a, spentA = append(out, a[0]), a[1:], nextA
		} else {
			out, b, spentB = append(out, b[0]), b[1:], nextB
		}
	}
	return out
}

// cheaperExactly says so where the exact way along a quick order fits the memory and takes less than what a query is assigned without it;
// empty where it does not, or where that takes long to find out.
func (a *assigner) cheaperExactly(d btn.Demand, assigned *btn.Plan) (string, error) {
	own, err := truncated.Of(a.Ctx, a.Problem(), d.Marginals)
	if err != nil {
		return "", err
	}
	most := int64(min(policy.MostFill, policy.FillShare*a.Settings.Budget))
	h := own.Hypergraph()
	order, within, err := contractionorder.MinFillWithin(a.Ctx, h, math.Log2(policy.AutoFlops), most)
	if err != nil || !within {
		return "", err
	}
	cost, err := contractionorder.EvaluateOrderWithin(a.Ctx, h, order, policy.AutoFlops)
	if err != nil || cost.Bytes > float64(a.Settings.Memory) {
		return "", err
	}
	planned := 0.0
	for k := range assigned.Estimates {
		planned += work(&assigned.Estimates[k])
	}
	if planned < policy.ChunkFlops {
		return "", nil // nobody waits for either
	}
	exact := cost.Flops
	if d.Marginals {
		exact *= policy.MarginalRate
	}
	if exact >= planned {
		return "", nil
	}
	return fmt.Sprintf("the exact way takes %.2g flops at most, what is planned without it %.2g: an exact answer is cheaper",
		exact, planned), nil
}
