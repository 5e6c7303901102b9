// Package estimates answers with estimates of several methods whose quality grows: what method auto does if it does not answer exactly
// (decision 26). Contractions (truncated legs, or regions where those do not fit), components that are drawn at random, and bounds share
// one budget. A trial of the contractions and a pilot of the draws decide the shares (shares). Under a deadline the value of belief
// propagation comes first.
package estimates

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
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Propose proposes estimates. If the request names a method, they are of that method, otherwise of several methods (proposeDivided). Under
// a deadline the value of belief propagation comes first, with a bound by its messages. If the request excludes exact answers and one would
// be cheaper, there is a warning.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	propose := proposeDivided
	if j.Method != nil {
		propose = withExactFallback(j.Method.Propose)
	}
	assignment, err := propose(ctx, j, ask)
	if err = proposal.NameLateStep(ctx, "estimates", err); err != nil { // over budget if the time for planning is over
		return nil, err
	}
	if !assignment.Plan.Grows() {
		return assignment, nil // exact
	}

	// Under a deadline: a value that is there at once, and its bound.
	if proposal.HasDeadline(ctx) {
		if !slices.ContainsFunc(assignment.Plan.Estimates, isRegion) {
			if assignment, err = regions.InsertBethe(ctx, j, assignment); err != nil {
				return nil, err
			}
		}
		assignment.Plan = bounding.DeriveByMessages(j, assignment.Plan)
	}

	// Whether an exact answer is cheaper. If the time for finding out is over, there is no warning.
	if j.Settings.NoExact && j.IsAuto() {
		err = proposal.RunInTimeShare(ctx, policy.ExactShare, "the price of the exact way", func(ctx context.Context) error {
			warning, err := warnIfExactIsCheaper(ctx, j, ask, assignment.Plan)
			if warning != "" {
				assignment.Warnings = append(assignment.Warnings, warning)
			}
			return err
		})
		if err != nil && fault.CodeOf(err) != fault.OverBudget {
			return nil, err
		}
	}
	return assignment, nil
}

// isRegion reports whether an estimate is by regions, or is belief propagation.
func isRegion(e btn.Estimate) bool { return e.Rule == btn.LogLinear }

// First returns a plan with the value of belief propagation and the bound by its messages, without any planning. It passes messages on the
// problem until enough is done, and every message at least once. It returns nil if belief propagation has no value. It takes linear time.
func First(ctx, enough context.Context, p *problem.Problem, s query.Settings) (*btn.Assignment, error) {
	assignment, err := regions.BethePlan(ctx, enough, p, s)
	if assignment == nil || err != nil {
		return nil, err
	}
	assignment.Plan = bounding.InsertByMessages(assignment.Plan)
	return assignment, nil
}

// withExactFallback returns a proposer that returns what propose does, or the proposal of the exact methods if propose returns nil. A
// method returns nil if the exact methods are as cheap.
func withExactFallback(propose proposal.Proposer) proposal.Proposer {
	return func(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
		if assignment, err := propose(ctx, j, ask); assignment != nil || err != nil {
			return assignment, err
		}
		return ask.Exact(ctx, ask)
	}
}

// contractions lists the methods whose estimates are contractions. The second is asked if the first is over budget.
var contractions = [2]proposal.Row{
	{Name: "truncated legs", Propose: ladder.Propose},
	{Name: "regions", Propose: withExactFallback(regions.Propose)},
}

// proposeContractions proposes truncated legs, the first row of contractions, or regions, the second, if truncated legs are over budget. If
// the two fail, the error has the reasons of the two.
func proposeContractions(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	assignment, legsErr := contractions[0].Ask(ctx, j, ask)
	if fault.CodeOf(legsErr) != fault.OverBudget {
		return assignment, legsErr
	}
	assignment, err := contractions[1].Ask(ctx, j, ask)
	if err != nil && ctx.Err() == nil {
		err = fault.New(fault.CodeOf(err), "%w; %w", legsErr, err)
	}
	return assignment, err
}

// contractionTime is the share of the time for planning that contractions may take if components are drawn as well.
// Chosen: they take two thirds of it if nothing else runs.
const contractionTime = 0.6

// proposeDivided proposes estimates by contractions and by components that are drawn at random, which share the budget (division).
//
//   - Contractions have the complete budget if the request sets a bond, the size of truncated legs, or if nothing can be drawn.
//   - Draws have the complete budget if most of the interaction is of low rank, or if contractions fail.
//   - If the contractions are exact, they are the proposal.
func proposeDivided(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if j.Settings.Bond > 0 {
		return proposeContractions(ctx, j, ask)
	}

	// Only draws, or only contractions.
	if structured, err := sampled.ProposeStructure(ctx, j, ask.Marginals); structured != nil || err != nil {
		if structured != nil {
			proposal.AddOffer(ctx, proposal.Rule, "most of the interaction is of low rank: samples from that structure have the whole budget")
		}
		return structured, err
	}
	chains, chainsErr := sampled.PrepareChainsInTime(ctx, j, ask.Marginals)
	switch err := ctx.Err(); {
	case err != nil:
		return nil, err
	case chainsErr != nil:
		proposal.AddOffer(ctx, proposal.Rule, "no components are drawn, contractions have the whole budget: %v", chainsErr)
		return proposeContractions(ctx, j, ask)
	case chains.Prepared.IsDecided():
		proposal.AddOffer(ctx, proposal.Rule, "nothing is left to draw: contractions have the whole budget")
		return proposeContractions(ctx, j, ask)
	}

	cutShortBefore := j.CountCutShort() // plans that the clock has cut short
	contracted, err := proposeInShare(ctx, j, ask)
	switch {
	case ctx.Err() != nil:
		return contracted, ctx.Err()
	case err == nil && !contracted.Plan.Grows(): // exact
		return contracted, nil
	case err != nil:
		samples, samplesErr := sampled.Propose(ctx, j, ask)
		if samplesErr != nil {
			return contracted, err // the reason why contractions failed
		}
		samples.Warnings = append(samples.Warnings, "components are sampled alone: "+err.Error())
		return samples, nil
	}

	// Contractions and draws. The assignment of the contractions gets the divided plan.
	d := &division{Job: j, ask: ask, contracted: contracted.Plan, chains: chains, isCutShort: j.CountCutShort() > cutShortBefore}
	plan, cacheState, err := d.rememberPlan(ctx)
	if err != nil {
		return nil, err
	}
	contracted.Plan = plan
	if cacheState != btn.CacheHit { // the plan is new, even if that of the contractions came from the cache
		contracted.Cache = cacheState
	}
	return contracted, nil
}

// proposeInShare proposes contractions for the largest share of the budget that a division may leave them, in a share of the time
// (contractionTime). If the contractions ask for the exact methods, these have all of the time that is left (ctx).
func proposeInShare(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	limits := j.Settings
	limits.Budget *= 1 - leastShare
	contractionAsk := ask
	contractionAsk.Exact = func(_ context.Context, exactAsk proposal.Ask) (*btn.Assignment, error) {
		return ask.Exact(ctx, exactAsk)
	}
	return proposeContractions(proposal.WithTimeShare(ctx, contractionTime), j.WithSettings(limits), contractionAsk)
}

// division divides the budget of a query between contractions, components that are drawn, and bounds.
type division struct {
	*proposal.Job
	ask        proposal.Ask
	contracted *btn.Plan       // only contractions, for almost all of the budget
	chains     *sampled.Chains // of which draws are made
	isCutShort bool            // the clock cut planning short, so that the plan is not to be remembered
	plan       *btn.Plan       // the divided plan; nil until it is made
}

// rememberPlan returns the plan of contractions and draws from the memo, or makes it, and returns the state of the cache for it. A plan is
// divided if it has draws, and undivided if it has contractions alone.
//
// A division depends on the network under the evidence, so a divided plan is kept under a key that has its shape. But if the contractions
// are along a plan of the model without evidence, and resolve the model, the undivided plan serves all evidence. So such a plan is looked
// for first, under a key without the evidence. If the plan under that key is divided, it says only that the contractions do not resolve the
// model.
func (d *division) rememberPlan(ctx context.Context) (*btn.Plan, string, error) {
	// The undivided plan for all evidence.
	servesAllEvidence := ladder.IsMasked(d.contracted)
	if servesAllEvidence && !d.Evidence.IsEmpty() {
		unmasked, err := truncated.SimplifyBase(ctx, d.Problem())
		if err != nil {
			return nil, "", err
		}
		key := d.GrowthKey("families under evidence"+keyOf(d.contracted), d.ask.Marginals)
		plan, cacheState, err := d.RememberComplete(ctx, key, unmasked.Hypergraph(), func(computing context.Context) (*btn.Plan, bool, error) {
			const mayStayUndivided = true
			return d.makePlan(computing, mayStayUndivided)
		})
		isDivided := err == nil && slices.ContainsFunc(plan.Estimates, isDrawn)
		if !isDivided {
			return plan, cacheState, err
		}
	}

	// The plan for this evidence.
	boundsKey, err := bounding.Key(ctx, d.Job, d.ask.Marginals)
	if err != nil {
		return nil, "", err
	}
	key := fmt.Sprintf("families %s masked=%t indices %v%s", keyOf(d.contracted), servesAllEvidence,
		d.chains.Prepared.DecidingIndices(), boundsKey)
	return d.RememberComplete(ctx, d.GrowthKey(key, d.ask.Marginals), d.chains.Prepared.Hypergraph(),
		func(computing context.Context) (*btn.Plan, bool, error) {
			return d.makePlan(computing, servesAllEvidence && !d.Evidence.IsEmpty())
		})
}

// isDrawn reports whether the components of an estimate are drawn.
func isDrawn(e btn.Estimate) bool { return e.Rule == btn.Pooled }

// keyOf returns a description of a plan of contractions, for the key of a plan that is made from it.
func keyOf(p *btn.Plan) string {
	s := ""
	for k := range p.Estimates {
		e := &p.Estimates[k]
		s += fmt.Sprintf(" %s %g %d %g", e.Track, e.Level, len(e.Parts), e.Cost.Flops)
	}
	return s
}

// makePlan makes the plan of contractions and draws, or returns it if it was made before (d.plan). isComplete is false if the time for
// planning ended first. mayStayUndivided allows a plan of contractions alone if they resolve the model.
func (d *division) makePlan(ctx context.Context, mayStayUndivided bool) (plan *btn.Plan, isComplete bool, err error) {
	if d.plan != nil {
		return d.plan, !d.isCutShort, nil
	}
	const allTime = 1 // that is left for planning
	planning, cancel := proposal.PlanningContext(ctx, allTime)
	defer cancel()
	plan, isComplete, err = d.divide(planning, mayStayUndivided)
	if proposal.IsOutOfTime(ctx, err) { // the time for planning, and not that of the job
		isComplete = false
		plan, err = d.divideHastily(ctx)
	}
	d.plan, d.isCutShort = plan, d.isCutShort || !isComplete
	return plan, !d.isCutShort, err
}

// divide returns a plan that divides the budget between truncated contractions (d.contracted) and draws of samples (d.chains), with bounds.
// The share of the draws follows from a trial of the contractions and a pilot of the draws (shareOfDraws). isComplete is false if the time
// for planning has cut that short. The plan has no draws
//
//   - if the trial truncates nothing (Lossless), or if draws are over budget: then it is d.contracted
//   - if mayStayUndivided is set, and the trial discards at most policy.Resolved of the weight: then it is d.contracted with bounds.
func (d *division) divide(ctx context.Context, mayStayUndivided bool) (plan *btn.Plan, isComplete bool, err error) {
	// A trial of the contractions.
	s := d.Settings
	trial, err := ladder.Trial(ctx, d.Job, d.contracted, d.ask.Marginals)
	if err != nil || trial.Lossless {
		return d.contracted, true, err
	}
	isResolved := trial.Tried && trial.Discarded <= policy.Resolved
	if mayStayUndivided && isResolved {
		plan, err = bounding.InsertMasked(ctx, d.Job, d.contracted)
		return plan, true, err
	}

	// A pilot of the draws, and the shares.
	half := s
	half.Budget /= 2
	draws, isComplete, err := sampled.ChooseSampling(ctx, d.chains, half)
	if err != nil {
		return nil, false, err
	}
	isComplete = isComplete && !trial.Late
	plan, err = d.combine(draws, shareOfDraws(ctx, trial, draws))
	if fault.CodeOf(err) == fault.OverBudget {
		return d.contracted, isComplete, nil
	}
	if err != nil {
		return nil, false, err
	}
	const afterFirst = 1 // the position of the bounds
	return bounding.Insert(ctx, d.Job, afterFirst, plan, isComplete)
}

// combine returns a plan with the estimates of contractions and those of draws, which have the given share of the budget. Draws have the
// whole budget if the first contraction takes almost all of it. The plan has the name of the method with the larger share. The error is
// over budget if the draws do not fit.
func (d *division) combine(draws sampled.Sampling, share float64) (*btn.Plan, error) {
	s := d.Settings
	contracted, spent := estimatesWithin(d.contracted.Estimates, (1-share)*s.Budget)
	if spent > (1-leastShare)*s.Budget {
		contracted, spent, share = nil, 0, 1 // draws alone
	}
	remaining := s
	remaining.Budget = max(share*s.Budget, s.Budget-spent) // also what contractions leave of their share
	components, err := sampled.PlanEstimates(d.chains, draws, remaining, d.ask.Marginals)
	if err != nil {
		return nil, err
	}
	plan := &btn.Plan{
		Method: d.contracted.Method, Accuracy: s.Accuracy, Warnings: d.contracted.Warnings,
		Estimates: mergeByCost(contracted, components),
	}
	if share > 1.0/2 {
		plan.Method = sampled.Method.Name
	}
	return plan, nil
}

// divideHastily gives contractions and chains half of the budget each, if there is no time for divide. HastyEstimates plans chains for half
// of the budget by itself. There is no trial and there are no bounds, and only a small pilot of the chains. If the chains do not fit the
// memory, which is an error over budget, it returns the contractions alone.
func (d *division) divideHastily(ctx context.Context) (*btn.Plan, error) {
	components, err := sampled.HastyEstimates(ctx, d.Job, d.chains, d.ask.Marginals)
	if fault.CodeOf(err) == fault.OverBudget {
		return d.contracted, nil
	}
	if err != nil {
		return nil, err
	}
	contracted, _ := estimatesWithin(d.contracted.Estimates, d.Settings.Budget/2) // their flops do not matter: chains have half in any case
	return &btn.Plan{
		Method: d.contracted.Method, Accuracy: d.Settings.Accuracy, Warnings: d.contracted.Warnings,
		Estimates: mergeByCost(contracted, components),
	}, nil
}

// leastShare is the share of a budget for the method that fits the model less.
// Chosen: one estimate, to be held against those of the other method.
const leastShare = 1.0 / 8

// evenSpread is the largest variance of weights, over their mean squared, for which weights count as even.
// Chosen: a thousand components then have a standard error of a tenth.
const evenSpread = 10.0

// findings are what a trial of contractions and a pilot of draws have found.
type findings struct {
	isTried     bool    // there was a trial
	discarded   float64 // the share of the weight that the trial left out
	unresolved  float64 // the value of discarded from which on the trial does not resolve the model
	spread      float64 // variance of the weights of draws, over their mean squared
	hiddenModes int     // modes that chains from other starts miss
}

// shares are the rules for the share of the budget that draws get, in sequence: the first that applies decides.
var shares = []struct {
	applies func(findings) bool
	share   float64
	reason  string
}{
	{func(f findings) bool { return !f.isTried }, 1.0 / 2, "there is no trial of contractions"},
	{func(f findings) bool { return f.discarded <= policy.Resolved && f.hiddenModes == 0 }, leastShare,
		"a trial resolves the model, and there is no hidden mode"},
	{func(f findings) bool { return f.discarded >= f.unresolved && f.spread <= evenSpread }, 1 - leastShare,
		"a trial does not resolve the model, and the weights are even"},
	{func(findings) bool { return true }, 1.0 / 2, "nothing speaks clearly for either"},
}

// shareOfDraws returns the share of the budget for draws. A trial of the contractions and a pilot of the draws have findings. The list
// shares has rules, and the share is that of the first rule that applies to the findings. It adds the findings and the rule to the offers
// of ctx, the lines that tell people how the plan was chosen.
func shareOfDraws(ctx context.Context, trial ladder.Verdict, draws sampled.Sampling) float64 {
	pilot := draws.About()
	f := findings{
		isTried: trial.Tried, discarded: trial.Discarded, unresolved: trial.Unresolved, spread: pilot.Spread, hiddenModes: pilot.Modes,
	}
	proposal.AddOffer(ctx, "samples", "by %s, weights with a variance of %.2g times their mean, squared; %d hidden modes",
		pilot.Kind, f.spread, f.hiddenModes)
	if f.isTried {
		proposal.AddOffer(ctx, "truncated legs", "a trial leaves out %.2g of the weight (resolved: %.2g, not resolved: %.2g)",
			f.discarded, policy.Resolved, f.unresolved)
	}
	for _, rule := range shares {
		if rule.applies(f) {
			proposal.AddOffer(ctx, proposal.Rule, "%s: samples have %g of the budget", rule.reason, rule.share)
			return rule.share
		}
	}
	return 0 // no rule applies
}

// estimatesWithin returns the first estimates that together take at most the budget, but at least one, and their flops.
func estimatesWithin(estimates []btn.Estimate, budget float64) (affordable []btn.Estimate, spent float64) {
	for k := range estimates {
		cost := estimateFlops(&estimates[k])
		if k > 0 && spent+cost > budget {
			return estimates[:k], spent
		}
		spent += cost
	}
	return estimates, spent
}

// estimateFlops returns the work of an estimate as a number of flops of truncated legs that takes the same time.
func estimateFlops(e *btn.Estimate) float64 {
	if isRegion(*e) {
		return policy.RegionRate * e.Cost.Flops
	}
	return e.Cost.Flops
}

// mergeByCost merges two sequences of estimates into one, in which the estimates of a keep their sequence, and so do those of b. The next
// estimate is the first one left of a or of b. For each, the flops of its own sequence up to it are added; the one with the smaller sum is
// next. So the cheap estimates of the two sequences come first.
func mergeByCost(a, b []btn.Estimate) []btn.Estimate {
	merged := make([]btn.Estimate, 0, len(a)+len(b))
	var spentA, spentB float64
	for len(a)+len(b) > 0 {
		flopsA, flopsB := math.Inf(1), math.Inf(1) // with the next estimate
		if len(a) > 0 {
			flopsA = spentA + estimateFlops(&a[0])
		}
		if len(b) > 0 {
			flopsB = spentB + estimateFlops(&b[0])
		}
		if flopsA <= flopsB {
			merged, a, spentA = append(merged, a[0]), a[1:], flopsA
		} else {
			merged, b, spentB = append(merged, b[0]), b[1:], flopsB
		}
	}
	return merged
}
