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
	"github.com/basetensor/basetensor/pkg/query"
)

// Propose proposes the plan of the network under the evidence of the query. The first of these that exists is the proposal:
//
//   - the contraction tree of the network, which serves all evidence
//   - its closed form
//   - the circuit of a model that was asked about before, if the order without evidence takes more than policy.HeavyFlops
//   - the elimination order of the network, or one for what the evidence leaves if that is cheaper, or a contraction tree over the
//     simplified network if a table does not fit the memory.
//
// The error is proposal.TooExpensive if the order takes more than policy.HeavyFlops under the evidence: then another method is asked.
//
// All but closed forms need the shape of the network, which indices its tables have. If the network is too large for a shape, the proposal
// is a closed form. If an earlier method has declined with an error (Ask.Refused), the error is that one instead.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	// A network without a shape.
	shape, err := j.Facts.Shape(ctx, j.Net)
	switch {
	case err != nil && ask.Refused != nil:
		return nil, ask.Refused
	case err != nil && j.HasLikelihoods:
		return nil, err
	case err != nil:
		return learned.ProposeClosedForm(ctx, j, err)
	}

	// A tree, or a closed form.
	ask.IsRepeated = j.NoteExactAsked() // the job has asked for an exact plan before
	plan, cacheState, err := rememberPlan(ctx, j, shape)
	if err != nil {
		return nil, err
	}

	assignment := proposal.NewAssignment(plan, cacheState)
	if tree := exact.JunctionOf(plan); tree != nil { // the plan is a contraction tree
		proposal.AddOffer(ctx, "elimination", "one tree for all evidence")
		return tree.Propose(j, assignment, ask)
	}
	base := exact.OrderOf(plan)
	if base == nil { // the plan is no order either, so it is a closed form
		proposal.AddOffer(ctx, "elimination", "%d components in closed form", plan.PartCount())
		return assignment, nil
	}

	// It also counts as repeated if an earlier job has left the plan in the memo, or if the caller says so (WithRecurringNetwork).
	ask.IsRepeated = ask.IsRepeated || cacheState == btn.CacheHit || proposal.IsRecurring(ctx)
	return proposeOrder(ctx, j, ask, assignment, base)
}

// proposeOrder proposes the circuit of a model that is asked about again, if base, its order without evidence, is expensive and the circuit
// is known. Otherwise it proposes an elimination along base, or along a new order for what the evidence leaves. assignment has the plan of
// base.
func proposeOrder(
	ctx context.Context, j *proposal.Job, ask proposal.Ask, assignment *btn.Assignment, base *exact.Elimination,
) (*btn.Assignment, error) {
	if ask.IsRepeated && base.Flops > policy.HeavyFlops {
		if circuit, err := circuits.ProposeKnown(ctx, j, ask); circuit != nil || err != nil {
			return circuit, err
		}
	}
	proposal.AddOffer(ctx, "elimination", "an order of %.3g flops without evidence", base.Flops)
	order, err := exact.OrderUnder(ctx, j, assignment, base) // if it is a new order, the assignment gets its plan
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

// keySlot names the key of a network's plan among the facts of the network. The key is remembered since it is a digest of the shape, which
// takes long for a large one.
type keySlot struct {
	kind   string
	memory int64
}

// rememberPlan returns the plan of the network without evidence (networkPlan) from the memo, or makes it, and returns the state of the
// cache for it. shape is that of the network.
func rememberPlan(ctx context.Context, j *proposal.Job, shape contractionorder.Hypergraph) (*btn.Plan, string, error) {
	slot := keySlot{"exact", j.Settings.Memory}
	if j.IsPart {
		slot.kind = "exact, of a part"
	}
	// The key is made once for the network, and remembered among its facts.
	key, err := proposal.Fact(ctx, j.Facts, slot, func() (string, error) { return j.Key(slot.kind, shape), nil })
	if err != nil {
		return nil, "", err
	}
	return j.RememberByKey(ctx, key, func(computing context.Context) (*btn.Plan, error) { return networkPlan(computing, j, shape) })
}

// networkPlan makes the plan of a network without evidence. shape is that of the network. The plan is
//
//   - a closed form, if the elimination order does not fit the memory, or if the closed form is cheaper and has one component. With several
//     components it would add terms of both signs, which an elimination does not. Example: a symmetric core over 200 variables, by count
//     polynomials in place of a chain of counters. A network with legs for likelihoods has no closed form.
//   - otherwise one contraction tree for all evidence, if the order does not take too many flops: at most policy.JunctionOrder. For a
//     formula, a network of nearly only logic, it is at most policy.HeavyFlops, since other methods simplify formulas first. A Bayesian
//     network does not count as a formula, even if nearly all of its tables are logic. There is no tree for a network with legs for
//     likelihoods, and none for a part of a network (IsPart).
//   - otherwise the elimination order.
func networkPlan(ctx context.Context, j *proposal.Job, shape contractionorder.Hypergraph) (*btn.Plan, error) {
	// An elimination order.
	net, settings := j.Net, j.Settings
	order, cost, moves, err := exact.MinFill(ctx, shape) // moves: the operations that the search took
	if err == nil && cost.Flops <= policy.HeavyFlops {   // above that, a tree over the simplified network pays instead
		order, cost, err = contractionorder.BestFrom(ctx, shape, order, cost, moves)
	}
	if err != nil {
		return nil, err
	}

	if !j.HasLikelihoods {
		closed, err := closedFormInstead(ctx, net, cost, settings.Memory)
		if closed != nil || err != nil {
			return closed, err
		}
	}

	// A tree, or else the order.
	treeLimit := policy.JunctionOrder
	if !net.Directed && circuits.IsFormula(j) {
		treeLimit = policy.HeavyFlops
	}
	if !j.HasLikelihoods && !j.IsPart && cost.Flops <= treeLimit {
		tree, ok, err := exact.JunctionPlan(ctx, net, shape, settings)
		if ok || err != nil {
			return tree, err
		}
	}
	return exact.EliminationPlan(order, cost), nil
}

// closedFormInstead returns the closed form of a network, if one is to be taken in place of an elimination order of the given cost: if the
// order does not fit the memory, or if it is expensive and the closed form has one component and is cheaper. Otherwise it returns nil.
func closedFormInstead(ctx context.Context, net *btn.Network, cost query.Cost, memory int64) (*btn.Plan, error) {
	fitsMemory := cost.Bytes <= float64(memory)
	maxTerms := 0 // of a closed form
	switch {
	case !fitsMemory:
		maxTerms = policy.MostClosedFormTerms
	case cost.Flops > policy.ReplanFlops:
		maxTerms = 1
	default:
		return nil, nil
	}
	closed, ok, err := learned.ExactClosedForm(ctx, net, maxTerms)
	if !ok || err != nil {
		return nil, err
	}
	if fitsMemory {
		const onlyPart = 0 // maxTerms is 1
		if isCheaper := contraction.Flops(net, &closed.Estimates[0], onlyPart) < cost.Flops; !isCheaper {
			return nil, nil
		}
	}
	return closed, nil
}
