package gradients

// Proposals: derivatives by the numbers of a model, by an elimination of their own.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// signedDerivatives warns of the exactness of derivatives whose terms have both signs: they may cancel further than Z does.
const signedDerivatives = "terms of the derivatives have both signs: each of an exact answer is right to 1e-11 of the " +
	"sum of their absolute values, which may be more than it is itself"

// Propose proposes to compute Z and its derivatives by every number of the network, by an elimination and a pass back over it. If
// ask.Cases is set, it proposes the sum of the ln-likelihoods of these cases and its derivatives.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if ask.Cases != nil {
		return proposeCases(ctx, j, ask.Cases)
	}
	p, err := PreparedOf(ctx, j.Problem())
	if err != nil {
		return nil, err
	}
	settings := fmt.Sprintf("gradients marginals=%t flops=%g", ask.Marginals, proposal.ExactFlopLimit(j.Settings))
	plan, cacheState, err := j.Remember(ctx, settings, p.Hypergraph(), func(computing context.Context) (*btn.Plan, error) {
		return planAdjoints(computing, j.Settings, p, ask.Marginals)
	})
	if err != nil {
		return nil, err
	}
	assignment := proposal.NewPricedAssignment(plan, cacheState)
	if p.HasNegativeEntries() {
		assignment.Warnings = []string{signedDerivatives}
	}
	return assignment, nil
}

// planAdjoints returns the plan that computes Z and its derivatives exactly. The slices of the elimination are divided among its parts.
func planAdjoints(ctx context.Context, s query.Settings, p *Prepared, marginals bool) (*btn.Plan, error) {
	adjoints, cost, err := p.Plan(ctx, PlanOptions{
		Memory:    s.Memory,
		Flops:     proposal.ExactFlopLimit(s),
		Marginals: marginals,
	})
	if err != nil {
		return nil, err
	}
	chunks := Chunks(adjoints, policy.SliceTaskFlops)
	parts := make([]btn.Part, chunks)
	for k := range chunks {
		parts[k] = &Adjoints{
			Plan: adjoints,
			From: proposal.ChunkStart(adjoints.Count, chunks, k),
			To:   proposal.ChunkStart(adjoints.Count, chunks, k+1),
		}
	}
	return proposal.ExactPlan(cost, parts...), nil
}
