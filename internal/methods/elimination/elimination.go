// Package elimination answers exactly along one plan for a network: a contraction tree for all evidence, an elimination order, or a closed
// form if that is cheaper.
//
// The plan is made once for the network without evidence, and remembered. A query adapts its order to what the evidence leaves.
package elimination

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/circuits"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/learned"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// Propose proposes the plan of the network under the evidence of the query. The first of these that exists is the proposal:
//
// The contraction tree of the network, which serves all evidence. Its closed form, which has no order to adapt and no tables to fit. The
// circuit of a model that was asked about before, if the order without evidence is not cheap. The order of the network, or one for what
// the evidence leaves if that is cheaper, or a contraction tree over the simplified network if a table does not fit the memory.
//
// The error is proposal.TooExpensive if the order takes more than policy.HeavyFlops under the evidence. A network that is too large to be
// laid out has a closed form or no answer. The error of the second is that of an earlier method (Ask.Refused) if there is one.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	shape, err := j.Facts.Shape(ctx, j.Net)
	switch {
	case err != nil && ask.Refused != nil:
		return nil, ask.Refused
	case err != nil && j.HasLikelihoods:
		return nil, err
	case err != nil:
		return learned.ProposeClosed(ctx, j, err)
	}
	ask.Again = j.NoteExactAsked()
	plan, cacheState, err := rememberPlan(ctx, j, shape)
	if err != nil {
		return nil, err
	}

	assignment := proposal.Take(plan, cacheState)
	if tree := exact.JunctionOf(plan); tree != nil {
		proposal.AddOffer(ctx, "elimination", "one tree for all evidence")
		return tree.Propose(j, assignment, ask)
	}
	base := exact.OrderOf(plan)
	if base == nil {
		proposal.AddOffer(ctx, "elimination", "%d components in closed form", plan.Len())
		return assignment, nil
	}
	ask.Again = ask.Again || cacheState == btn.CacheHit || proposal.IsRecurring(ctx)
	if ask.Again && base.Flops > policy.HeavyFlops {
		if circuit, err := circuits.ProposeKnown(ctx, j, ask); circuit != nil || err != nil {
			return circuit, err
		}
	}
	proposal.AddOffer(ctx, "elimination", "an order of %.3g flops without evidence", base.Flops)
	order, err := exact.OrderUnder(ctx, j, assignment, base)
	if err != nil {
		return nil, err
	}
	if order.Cost.Flops > policy.HeavyFlops {
		return nil, proposal.TooExpensive{Flops: order.Cost.Flops}
	}
	return order.Propose(ctx, j, assignment, ask)
}

// HasTree reports whether the network has one contraction tree for all evidence.
func HasTree(ctx context.Context, j *proposal.Job) bool {
	shape, err := j.Facts.Shape(ctx, j.Net)
	if err != nil {
		return false
	}
	plan, _, err := rememberPlan(ctx, j, shape)
	return err == nil && exact.JunctionOf(plan) != nil
}

// keySlot is the slot of the key of a network's plan. The key is a digest of the shape, which takes long for a large one.
type keySlot struct {
	kind   string
	memory int64
}

// rememberPlan returns the plan of the network, whose shape it is given, through the memo, and the state of the cache for it.
func rememberPlan(ctx context.Context, j *proposal.Job, shape contractionorder.Hypergraph) (*btn.Plan, string, error) {
	slot := keySlot{"exact", j.Settings.Memory}
	if j.IsPart {
		slot.kind = "exact, of a part"
	}
	key, err := proposal.Fact(ctx, j.Facts, slot, func() (string, error) { return j.Key(slot.kind, shape), nil })
	if err != nil {
		return nil, "", err
	}
	return j.Recall(ctx, key, func(computing context.Context) (*btn.Plan, error) { return networkPlan(computing, j, shape) })
}

// networkPlan makes the plan of a network without evidence: a closed form, a tree or an order for C = B.
//
// An elimination is preferred if it fits, since it adds no terms of both signs. A closed form is taken if the elimination does not fit
// the memory, or if the closed form has one component, so that it adds none either, and is cheaper (a symmetric core over 200 variables:
// count polynomials against a chain of counters). A network with legs of likelihoods has no closed form.
//
// A tree is preferred to the order. There is none for a relevant part, and for an order of too many flops: of a formula more than
// policy.HeavyFlops, which simplification makes cheaper, of other networks more than policy.JunctionOrder. Bayesian networks are never
// formulas here, even if nearly all of their tables are logic.
func networkPlan(ctx context.Context, j *proposal.Job, shape contractionorder.Hypergraph) (*btn.Plan, error) {
	net, settings := j.Net, j.Settings
	order, cost, moves, err := exact.MinFill(ctx, shape)
	if err == nil && cost.Flops <= policy.HeavyFlops {
		order, cost, err = contractionorder.BestFrom(ctx, shape, order, cost, moves)
	}
	if err != nil {
		return nil, err
	}

	terms := 0 // that a closed form may have
	switch {
	case cost.Bytes > float64(settings.Memory):
		terms = policy.MostClosedFormTerms
	case cost.Flops > policy.ReplanFlops:
		terms = 1
	}
	if terms > 0 && !j.HasLikelihoods {
		closed, ok, err := learned.ExactForm(ctx, net, terms)
		if err != nil {
			return nil, err
		}
		if ok && (terms > 1 || contraction.Flops(net, &closed.Estimates[0], 0) < cost.Flops) {
			return closed, nil
		}
	}

	limit := policy.JunctionOrder
	if !net.Directed && circuits.Formula(j) {
		limit = policy.HeavyFlops
	}
	if !j.HasLikelihoods && !j.IsPart && cost.Flops <= limit {
		tree, ok, err := exact.JunctionPlan(ctx, net, shape, settings)
		if ok || err != nil {
			return tree, err
		}
	}
	return exact.EliminationPlan(order, cost), nil
}
