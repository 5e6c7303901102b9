package sampled

// Chains that begin at the low-rank part of a network, a function of few linear statistics.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/base/sampling"
	"github.com/basetensor/basetensor/internal/methods/bounding"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/sampled/importance"
	"github.com/basetensor/basetensor/internal/methods/structured"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// ByStructure is the kind of Structure.
const ByStructure Kind = "structure"

// Structure draws components as the ends of chains. A chain begins with an exact draw from the low-rank part of the network's tables
// (package structured).
type Structure struct {
	Base
	Rungs int `msgpack:"rungs,omitempty"` // of the path
	// Each is the cost of a chain, Setup the cost before the first, flops.
	Each  float64          `msgpack:"each,omitempty"`
	Setup float64          `msgpack:"setup,omitempty"`
	Path  *structured.Path `msgpack:"structure,omitempty"`
}

// Fits implements Sampling. It checks the costs and the path.
func (s *Structure) Fits(n *btn.Network, _ int64) error {
	switch {
	case s.Path == nil:
		return btn.Misfit("chains from a low-rank part that is not there")
	case !(s.Each >= 0) || !(s.Setup >= 0) || s.Each+s.Setup > math.MaxFloat64:
		return btn.Misfit("%v and %v flops", s.Each, s.Setup)
	}
	return s.Path.Fits(n)
}

// Describe implements Sampling. It sets the size to the number of rungs.
func (s *Structure) Describe(r *query.EstimateResult) { r.Size = s.Rungs }

// Cost implements Sampling. It returns the flops of a chain, and those before the first.
func (s *Structure) Cost(*Chains) (componentFlops, setupFlops float64) { return s.Each, s.Setup }

// Bytes implements Sampling. Each component keeps a weight, and a state if marginals are wanted.
func (s *Structure) Bytes(_ *Chains, components int64, marginals bool) float64 {
	return importance.Bytes(components, len(s.Path.Fit.Domains), marginals)
}

// Draw implements Sampling. It draws with package structured, and multiplies all weights by the scale of the network. There are two maxima:
// LnBound (LnMost in the result) is an upper bound of every weight that a chain can have, LnLargest (Top) the largest weight of these
// chains.
func (s *Structure) Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error) {
	w, flops, err := structured.WeighChains(ctx, p, s.Path, s.Seed, from, to, want.Marginals)
	if err != nil {
		return btn.Value{}, err
	}
	lnScale := p.Net.Scale.LogAbs()
	for k := range w.Ln {
		w.Ln[k] += lnScale
	}
	v := btn.Value{Z: scaled.FromLog(sampling.LnMean(w.Ln)), Flops: s.Setup + flops, Weights: &btn.Weights{Ln: w.Ln}}
	if lnBound := w.LnBound + lnScale; !math.IsInf(lnBound, 0) { // +Inf if no bound is known: then LnMost stays nil
		v.Weights.LnMost = &lnBound
	}
	if w.WeightByValue != nil { // marginals are wanted; the sums are relative to the largest weight
		v.Weights.Top, v.Weights.Domains = w.LnLargest+lnScale, contraction.Domains(p.Net)
		v.Weights.Share, v.Weights.Squares = w.WeightByValue, w.SquareByValue
	}
	return v, nil
}

// ProposeStructure proposes chains that begin at the model's low-rank part, for the complete budget, and bounds. It returns nil if the
// low-rank part carries too little of the interaction, or if the network is not crowded: a crowded one has so many tables of two variables
// that no elimination is cheap. The length of chains is chosen for the first query and kept for later ones.
func ProposeStructure(ctx context.Context, j *proposal.Job, marginals bool) (*btn.Assignment, error) {
	if !structured.IsCrowded(j.Net) {
		return nil, nil
	}
	// The empty hypergraph: the key has no shape under the evidence, so that one plan serves all queries.
	plan, cacheState, err := j.RememberComplete(ctx, j.GrowthKey("near", marginals), contractionorder.Hypergraph{},
		func(computing context.Context) (*btn.Plan, bool, error) {
			return planStructure(computing, j, marginals)
		})
	if err != nil || len(plan.Estimates) == 0 {
		return nil, err
	}
	return proposal.NewAssignment(plan, cacheState), nil
}

// planStructure returns the plan of ProposeStructure. It has no estimates if there is nothing to propose. isComplete is false if the time
// for planning ended first. If the network has many tables, there are no bounds.
func planStructure(ctx context.Context, j *proposal.Job, marginals bool) (plan *btn.Plan, isComplete bool, err error) {
	planning, cancel := proposal.PlanningContext(ctx, policy.ExactShare)
	defer cancel()
	path, spread, chainFlops, setupFlops, err := structured.FindNearPath(planning, j.Problem(), j.Settings.Seed,
		proposalShare*j.Settings.Budget)
	if proposal.IsOutOfTime(ctx, err) {
		return &btn.Plan{Method: query.MethodSampled}, false, nil
	}
	if err != nil || path == nil {
		return &btn.Plan{Method: query.MethodSampled}, true, err
	}

	plan = &btn.Plan{Method: query.MethodSampled, Accuracy: j.Settings.Accuracy}
	var noChains *Chains // Structure has the costs itself
	plan.Estimates, err = PlanEstimates(noChains, &Structure{
		Base:  Base{Kind: ByStructure, Seed: j.Settings.Seed, Spread: spread},
		Rungs: path.Rungs, Each: chainFlops, Setup: setupFlops, Path: path,
	}, j.Settings, marginals)
	if err != nil || len(j.Net.Cores) > policy.MostTables {
		return plan, true, err
	}
	const first = 0 // bounds come before all estimates
	return bounding.Insert(planning, j, first, plan, true)
}
