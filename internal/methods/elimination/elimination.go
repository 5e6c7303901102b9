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

// Propose is the proposal of the network's plan under the query's evidence:
//
//   - its contraction tree, which serves all evidence;
//   - its closed form, which has no order to adapt and no tables to fit;
//   - the circuit of a model that was asked about before, if the order without evidence is not cheap;
//   - its order, or one for what the evidence leaves if that is cheaper, or a contraction tree over the simplified network if a table does
//     not fit the memory.
//
// An order of more than policy.HeavyFlops under the evidence is proposal.TooDear. A network that cannot be laid out has a closed form or no
// answer, for the reason of an earlier method if that gave one.
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
	plan, hit, err := remembered(ctx, j, shape)
	if err != nil {
		return nil, err
	}

	found := proposal.Take(plan, hit)
	if tree := exact.JunctionOf(plan); tree != nil {
		proposal.AddOffer(ctx, "elimination", "one tree for all evidence")
		return tree.Propose(j, found, ask)
	}
	base := exact.OrderOf(plan)
	if base == nil {
		proposal.AddOffer(ctx, "elimination", "%d components in closed form", plan.Len())
		return found, nil
	}
	ask.Again = ask.Again || hit == btn.CacheHit || proposal.IsRecurring(ctx)
	if ask.Again && base.Flops > policy.HeavyFlops {
		if circuit, err := circuits.ProposeKnown(ctx, j, ask); circuit != nil || err != nil {
			return circuit, err
		}
	}
	proposal.AddOffer(ctx, "elimination", "an order of %.3g flops without evidence", base.Flops)
	order, err := exact.OrderUnder(ctx, j, found, base)
	if err != nil {
		return nil, err
	}
	if order.Cost.Flops > policy.HeavyFlops {
		return nil, proposal.TooExpensive{Flops: order.Cost.Flops}
	}
	return order.Propose(ctx, j, found, ask)
}

// HasTree reports whether the network has one contraction tree for all evidence.
func HasTree(ctx context.Context, j *proposal.Job) bool {
	shape, err := j.Facts.Shape(ctx, j.Net)
	if err != nil {
		return false
	}
	plan, _, err := remembered(ctx, j, shape)
	return err == nil && exact.JunctionOf(plan) != nil
}

// keySlot is that of the key of a network's plan: a digest of its shape, which takes long for a large one.
type keySlot struct {
	kind   string
	memory int64
}

// remembered returns the plan that is remembered for the network, of a shape, and the state of the cache for it.
func remembered(ctx context.Context, j *proposal.Job, shape contractionorder.Hypergraph) (*btn.Plan, string, error) {
	slot := keySlot{"exact", j.Settings.Memory}
	if j.IsPart {
		slot.kind = "exact, of a part"
	}
	key, err := proposal.Fact(j.Facts, slot, func() (string, error) { return j.Key(slot.kind, shape), nil })
	if err != nil {
		return nil, "", err
	}
	return j.Recall(ctx, key, func(computing context.Context) (*btn.Plan, error) { return networkPlan(computing, j, shape) })
}

// networkPlan is made once per network: a tree or an order for C = B, or a closed form. Elimination comes
// first if it fits, because it adds no terms of both signs. A closed form of one component has none to add
// either, and is taken if it is cheaper (a symmetric core over 200 variables: count polynomials against a
// chain of counters). There is no tree of a relevant part, nor of a formula of more than policy.HeavyFlops, which simplification makes
// cheaper. Bayesian networks have one even if nearly all of their tables are logic. There is no closed form of a network with legs of
// likelihoods.
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
