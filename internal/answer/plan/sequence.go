package plan

// The exact way, C = B: the sequence in which families are asked.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods"
	"github.com/basetensor/basetensor/internal/methods/circuits"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/learned"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/structured"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// exact assigns C = B. The first of these that applies:
//
//   - the form in count space, where a symmetric core would begin elimination with a long chain of counters;
//   - the nodes of few linear statistics, where tables of two variables are many: package structured;
//   - the closed form, where no order fits the memory and the cores' own ranks are small, or where it is one
//     component and cheaper;
//   - the contraction tree remembered for the network without evidence, where it costs little: package junction;
//   - the circuit of a model that was asked about before, where that order is not cheap;
//   - that order, or one made for the query's evidence, where it costs little, or a contraction tree over the network as it is, where
//     that is cheaper;
//   - methods.Heavily.
func (a *assigner) exact(d btn.Demand) (*btn.Assignment, error) {
	ask := proposal.Ask{Marginals: d.Marginals, Targets: d.Targets}
	found, refused := a.first(ask)
	if found != nil {
		return found, nil
	}
	shape, err := a.Facts.Shape(a.Ctx, a.Net)
	if err != nil && refused != nil {
		return nil, refused
	}
	if err != nil && a.hasLikelihoods {
		return nil, err
	}
	if err != nil {
		return learned.ProposeClosed(a.Job, err)
	}
	if a.Evidence.IsEmpty() && structured.Crowded(a.Net) && !circuits.Logical(a.Job) { // a search for an order would take long
		if err := exact.WithinReach(a.Ctx, shape, proposal.Limit(a.Settings)); err != nil {
			ask.Flops = math.Inf(1) // of an order
			if found, _ := structured.Propose(a.Job, ask); found != nil {
				return found, nil
			}
			return nil, err
		}
	}
	ask.Again, a.exactly.asked = a.exactly.asked, true
	plan, hit, err := a.remembered(shape)
	if err != nil {
		return nil, err
	}

	assignment := proposal.Take(plan, hit)
	if tree := exact.JunctionOf(plan); tree != nil {
		return proposal.Way{Name: "junction tree", Propose: func(j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
			return tree.Propose(j, assignment, ask)
		}}.Ask(a.Job, ask)
	}
	base := exact.OrderOf(plan)
	if base == nil {
		proposal.Note(a.Ctx, "closed form", "%d components", plan.Len())
		return assignment, nil // closed form: no order to adapt, no tables to fit
	}

	ask.Again = ask.Again || hit == btn.CacheHit || proposal.Recurs(a.Ctx)
	if ask.Again && base.Flops > policy.HeavyFlops {
		if known, err := circuits.ProposeKnown(a.Job, ask); known != nil || err != nil {
			return known, err
		}
	}

	order, err := exact.OrderUnder(a.Job, assignment, base)
	if err != nil {
		return nil, err
	}
	if ask.Flops = order.Cost.Flops; ask.Flops > policy.HeavyFlops {
		proposal.Note(a.Ctx, "elimination", "%.3g flops: other ways are asked above %.0e", ask.Flops, policy.HeavyFlops)
		return proposal.First(a.Job, ask, methods.Heavily...)
	}
	return proposal.Way{Name: "elimination", Propose: func(j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
		return order.Propose(j, assignment, ask)
	}}.Ask(a.Job, ask)
}

// remembered returns the plan of the exact way that is remembered for the network, of a shape, and the state of the cache for it.
func (a *assigner) remembered(shape contractionorder.Hypergraph) (*btn.Plan, string, error) {
	if a.exactly.key == "" {
		kind := "exact"
		if a.isPart {
			kind = "exact, of a part"
		}
		a.exactly.key = a.Key(kind, shape)
	}
	return a.Recall(a.exactly.key, func(ctx context.Context) (*btn.Plan, error) {
		return a.exactPlan(ctx, shape)
	})
}

// first returns the first proposal of methods.Firstly, or the first reason why there is none; nil and nil where none is for the
// query.
func (a *assigner) first(ask proposal.Ask) (found *btn.Assignment, refused error) {
	for _, way := range methods.Firstly {
		found, err := way.Ask(a.Job, ask)
		if found != nil && err == nil {
			return found, nil
		}
		if refused == nil {
			refused = err
		}
	}
	return nil, refused
}

// exactPlan is made once per network: a tree or an order for C = B, or a closed form. Elimination comes
// first where it fits, because it adds no terms of both signs; a closed form of one component has none to add
// either, and is taken when it is cheaper (a symmetric core over 200 variables: count polynomials against a
// chain of counters). There is no tree of a network that is asked one question alone, nor of a
// formula of more than policy.HeavyFlops, which simplification makes cheaper; Bayesian networks have one even if nearly all of their tables
// are logic. There is no closed form of one with legs of likelihoods.
func (a *assigner) exactPlan(ctx context.Context, shape contractionorder.Hypergraph) (*btn.Plan, error) {
	net, s := a.Net, a.Settings
	order, cost, moves, err := exact.MinFill(ctx, shape)
	if err == nil && cost.Flops <= policy.HeavyFlops {
		order, cost, err = contractionorder.BestFrom(ctx, shape, order, cost, moves)
	}
	if err != nil {
		return nil, err
	}

	most := 0
	switch {
	case cost.Bytes > float64(s.Memory):
		most = policy.MostClosedFormTerms
	case cost.Flops > policy.ReplanFlops:
		most = 1
	}

	if most > 0 && !a.hasLikelihoods {
		closed, ok, err := learned.ExactForm(ctx, net, most)
		if err != nil {
			return nil, err
		}
		if ok && (most > 1 || contraction.Flops(net, &closed.Estimates[0], 0) < cost.Flops) {
			return closed, nil
		}
	}

	limit := policy.JunctionOrder
	if !net.Directed && circuits.Formula(a.Job) {
		limit = policy.HeavyFlops
	}
	if !a.hasLikelihoods && !a.isPart && cost.Flops <= limit {
		tree, ok, err := exact.JunctionPlan(ctx, net, shape, s)
		if ok || err != nil {
			return tree, err
		}
	}
	return exact.EliminationPlan(order, cost), nil
}
