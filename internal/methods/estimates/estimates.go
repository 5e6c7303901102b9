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

// Propose is the proposal of estimates, by the method that the request names if that grows. Under a deadline the value of belief
// propagation is first, and a bound by its messages.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	propose := divided
	if j.Method != nil {
		propose = orExact(j.Method.Propose)
	}
	found, err := propose(ctx, j, ask)
	if err = proposal.InBudget(ctx, "estimates", err); err != nil {
		return nil, err
	}
	if !found.Plan.Grows() {
		return found, nil
	}
	if proposal.HasDeadline(ctx) {
		if !slices.ContainsFunc(found.Plan.Estimates, isRegion) {
			if found, err = regions.First(ctx, j, found); err != nil {
				return nil, err
			}
		}
		found.Plan = bounding.AtOnce(j, found.Plan)
	}
	if j.Settings.NoExact && j.IsAuto() {
		err = proposal.Within(ctx, policy.ExactShare, "the price of the exact way", func(ctx context.Context) error {
			warning, err := cheaperExactly(ctx, j, ask, found.Plan)
			if warning != "" {
				found.Warnings = append(found.Warnings, warning)
			}
			return err
		})
		if err != nil && fault.CodeOf(err) != fault.OverBudget {
			return nil, err
		}
	}
	return found, nil
}

// isRegion reports whether an estimate is by regions, or is belief propagation.
func isRegion(e btn.Estimate) bool { return e.Rule == btn.LogLinear }

// First assigns the value of belief propagation and the bound by its messages, without any planning, and passes the messages on
// the problem until enough ends: every one of them once at least. It returns nil if belief propagation has no value. Linear time.
func First(ctx, enough context.Context, p *problem.Problem, s query.Settings) (*btn.Assignment, error) {
	found, err := regions.Unplanned(ctx, enough, p, s)
	if found == nil || err != nil {
		return nil, err
	}
	found.Plan = bounding.ByMessages(found.Plan)
	return found, nil
}

// orExact returns a proposer that takes the exact way if that is as cheap as a method, which proposes nothing then.
func orExact(propose proposal.Proposer) proposal.Proposer {
	return func(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
		if found, err := propose(ctx, j, ask); found != nil || err != nil {
			return found, err
		}
		return ask.Exact(ctx, ask)
	}
}

// contractions are the methods whose estimates are contractions: the first is asked, and the others if it does not fit.
var contractions = [2]proposal.Row{
	{Name: "truncated legs", Propose: ladder.Propose},
	{Name: "regions", Propose: orExact(regions.Propose)},
}

// proposeContractions is the proposal of truncated legs, or of regions if those do not fit.
func proposeContractions(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	found, refused := contractions[0].Ask(ctx, j, ask)
	if fault.CodeOf(refused) != fault.OverBudget {
		return found, refused
	}
	found, err := contractions[1].Ask(ctx, j, ask)
	if err != nil && ctx.Err() == nil {
		err = fault.New(fault.CodeOf(err), "%w; %w", refused, err)
	}
	return found, err
}

// contractionTime is the part of the time for planning that contractions may take if components are drawn as well.
// Chosen: they take two thirds of it where nothing else runs.
const contractionTime = 0.6

// divided is the proposal of estimates of one method or of two. Networks that cannot be drawn from have contractions alone, and those that
// cannot be contracted samples.
func divided(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if j.Settings.Bond > 0 {
		return proposeContractions(ctx, j, ask)
	}
	if structured, err := sampled.ProposeStructure(ctx, j, ask.Marginals); structured != nil || err != nil {
		if structured != nil {
			proposal.AddOffer(ctx, proposal.Rule, "most of the interaction is of low rank: samples from that structure have the whole budget")
		}
		return structured, err
	}
	chains, refused := sampled.ChainsInTime(ctx, j, ask.Marginals)
	switch err := ctx.Err(); {
	case err != nil:
		return nil, err
	case refused != nil:
		proposal.AddOffer(ctx, proposal.Rule, "no components are drawn, contractions have the whole budget: %v", refused)
		return proposeContractions(ctx, j, ask)
	case chains.Prepared.Decided():
		proposal.AddOffer(ctx, proposal.Rule, "nothing is left to draw: contractions have the whole budget")
		return proposeContractions(ctx, j, ask)
	}

	limits, cutBefore := j.Settings, j.CountCutShort()
	limits.Budget *= 1 - leastShare
	within := ask
	within.Exact = func(_ context.Context, of proposal.Ask) (*btn.Assignment, error) { return ask.Exact(ctx, of) } // it has all of the time
	contracted, err := proposeContractions(proposal.WithTimeShare(ctx, contractionTime), j.WithSettings(limits), within)
	switch {
	case ctx.Err() != nil:
		return contracted, ctx.Err()
	case err == nil && !contracted.Plan.Grows():
		return contracted, nil
	case err != nil:
		samples, refused := sampled.Propose(ctx, j, ask)
		if refused != nil {
			return contracted, err
		}
		samples.Warnings = append(samples.Warnings, "components are sampled alone: "+err.Error())
		return samples, nil
	}
	d := &division{Job: j, ask: ask, contracted: contracted.Plan, chains: chains, isShort: j.CountCutShort() > cutBefore}
	plan, hit, err := d.remembered(ctx)
	if err != nil {
		return nil, err
	}
	contracted.Plan = plan
	if hit != btn.CacheHit {
		contracted.Cache = hit
	}
	return contracted, nil
}

// division divides the budget between contractions, components that are drawn, and bounds.
type division struct {
	*proposal.Job
	ask        proposal.Ask
	contracted *btn.Plan // by contractions alone
	chains     *sampled.Chains
	isShort    bool      // the clock cut planning short
	plan       *btn.Plan // the divided plan, once it was made
}

// remembered returns the divided plan, and the state of the cache for it. A model's own plan serves all evidence: if it resolves the model
// it is not divided, for that would be done for each evidence anew.
func (d *division) remembered(ctx context.Context) (*btn.Plan, string, error) {
	isModels := ladder.Masked(d.contracted)
	if isModels && !d.Evidence.IsEmpty() {
		unmasked, err := truncated.OfBase(ctx, d.Problem())
		if err != nil {
			return nil, "", err
		}
		key := d.GrowthKey("families under evidence"+describe(d.contracted), d.ask.Marginals)
		plan, hit, err := d.RememberComplete(ctx, key, unmasked.Hypergraph(), func(computing context.Context) (*btn.Plan, bool, error) {
			return d.make(computing, true)
		})
		if err != nil || !slices.ContainsFunc(plan.Estimates, isDrawn) {
			return plan, hit, err
		}
	}
	boundsKey, err := bounding.Key(ctx, d.Job, d.ask.Marginals)
	if err != nil {
		return nil, "", err
	}
	key := fmt.Sprintf("families %s masked=%t indices %v%s", describe(d.contracted), isModels, d.chains.Prepared.Indices(), boundsKey)
	return d.RememberComplete(ctx, d.GrowthKey(key, d.ask.Marginals), d.chains.Prepared.Hypergraph(),
		func(computing context.Context) (*btn.Plan, bool, error) {
			return d.make(computing, isModels && !d.Evidence.IsEmpty())
		})
}

// isDrawn reports whether the components of an estimate are drawn.
func isDrawn(e btn.Estimate) bool { return e.Rule == btn.Pooled }

// describe lists what a plan of contractions is, for the key of what is made of it.
func describe(p *btn.Plan) string {
	s := ""
	for k := range p.Estimates {
		e := &p.Estimates[k]
		s += fmt.Sprintf(" %s %g %d %g", e.Track, e.Level, len(e.Parts), e.Cost.Flops)
	}
	return s
}

// make returns the divided plan. isWhole is false if the time for planning ended before all was known. mayStayWhole reports whether a plan
// that resolves the model is not divided.
func (d *division) make(ctx context.Context, mayStayWhole bool) (plan *btn.Plan, isWhole bool, err error) {
	if d.plan != nil {
		return d.plan, !d.isShort, nil
	}
	planning, cancel := proposal.PlanningContext(ctx, 1)
	defer cancel()
	plan, isWhole, err = d.divide(planning, mayStayWhole)
	if proposal.IsOutOfTime(ctx, err) {
		isWhole = false
		plan, err = d.divideHastily(ctx)
	}
	d.plan, d.isShort = plan, d.isShort || !isWhole
	return plan, !d.isShort, err
}

// divide divides the budget by a trial of the contractions and a pilot of the draws.
func (d *division) divide(ctx context.Context, mayStayWhole bool) (plan *btn.Plan, isWhole bool, err error) {
	s := d.Settings
	legs, err := ladder.Trial(ctx, d.Job, d.contracted, d.ask.Marginals)
	if err != nil || legs.Lossless {
		return d.contracted, true, err
	}
	if mayStayWhole && legs.Tried && legs.Discarded <= policy.Resolved {
		plan, err = bounding.Beside(ctx, d.Job, d.contracted)
		return plan, true, err
	}
	half := s
	half.Budget /= 2
	draws, isWhole, err := sampled.Choose(ctx, d.chains, half)
	if err != nil {
		return nil, false, err
	}
	isWhole = isWhole && !legs.Late
	share := shareOfDraws(ctx, legs, draws)

	plan = &btn.Plan{Method: d.contracted.Method, Accuracy: s.Accuracy, Warnings: d.contracted.Warnings}
	contracted, spent := upTo(d.contracted.Estimates, (1-share)*s.Budget)
	if spent > (1-leastShare)*s.Budget { // the first estimate alone
		contracted, spent, share = nil, 0, 1
	}
	remaining := s
	remaining.Budget = max(share*s.Budget, s.Budget-spent)
	components, err := sampled.Components(d.chains, draws, remaining, d.ask.Marginals)
	if fault.CodeOf(err) == fault.OverBudget {
		return d.contracted, isWhole, nil
	}
	if err != nil {
		return nil, false, err
	}
	if share > 1.0/2 {
		plan.Method = sampled.Method.Name
	}
	plan.Estimates = merged(contracted, components)
	return bounding.Insert(ctx, d.Job, 1, plan, isWhole)
}

// divideHastily is divide without a trial, a choice among kinds of draws, and bounds: chains from a small pilot have half of the budget.
func (d *division) divideHastily(ctx context.Context) (*btn.Plan, error) {
	components, err := sampled.Hasty(ctx, d.Job, d.chains, d.ask.Marginals)
	if fault.CodeOf(err) == fault.OverBudget {
		return d.contracted, nil
	}
	if err != nil {
		return nil, err
	}
	contracted, _ := upTo(d.contracted.Estimates, d.Settings.Budget/2)
	return &btn.Plan{
		Method: d.contracted.Method, Accuracy: d.Settings.Accuracy, Warnings: d.contracted.Warnings, Estimates: merged(contracted, components),
	}, nil
}

// leastShare is the part of a budget that the method gets which has little to say.
// Chosen: one estimate, to be held against those of the other method.
const leastShare = 1.0 / 8

// evenSpread is the variance of weights, relative to their mean, up to which weights are even.
// Chosen: a thousand components then have a standard error of a tenth.
const evenSpread = 10.0

// findings are what a trial of contractions and a pilot of draws have found.
type findings struct {
	isTried               bool    // there is a trial
	discarded, unresolved float64 // the share of the weight that the trial leaves out, and from which the model is not resolved
	spread                float64 // variance of the weights of draws, over their mean squared
	hiddenModes           int     // modes that chains from other starts miss
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

// shareOfDraws returns the part of the budget that draws get beside contractions, and notes why.
func shareOfDraws(ctx context.Context, legs ladder.Verdict, draws sampled.Sampling) float64 {
	pilot := draws.About()
	f := findings{
		isTried: legs.Tried, discarded: legs.Discarded, unresolved: legs.Unresolved, spread: pilot.Spread, hiddenModes: pilot.Modes,
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
	return 0
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
	if isRegion(*e) {
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
