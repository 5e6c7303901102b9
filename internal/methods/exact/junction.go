package exact

// C = B along a tree of the network without evidence, for all its queries.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/junction"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Junction is B itself, contracted along a tree over the tables of the network without evidence (package junction): evidence is a weight,
// and no query is planned for.
type Junction struct {
	Tables int     `msgpack:"tables"` // leaves of the tree
	Merges []int   `msgpack:"merges"` // two tables per merge; merge k makes table Tables+k
	Flops  float64 `msgpack:"flops"`  // of Z, where evidence changes all tables
}

// Class implements Part.
func (*Junction) Class() btn.Class { return btn.ClassJunction }

// About implements btn.Part.
func (*Junction) About() btn.About { return btn.About{KeepsRange: true} }

// Fits implements Part. Whether the tree is one over the network's tables is for the contraction to say.
func (p *Junction) Fits(*btn.Network) error {
	if !(p.Flops >= 0) || len(p.Merges)%2 != 0 || p.Tables < 1 {
		return btn.Misfit("a tree of %d tables and %d merged ones, %v flops", p.Tables, len(p.Merges), p.Flops)
	}
	return nil
}

// Cost implements contraction.Priced.
func (p *Junction) Cost(*problem.Problem) query.Cost { return query.Cost{Flops: p.Flops} }

// tree is the tree as one of the search.
func (p *Junction) tree() contractionorder.Tree {
	return tree(&Tree{Tables: p.Tables, Merges: p.Merges})
}

// JunctionOf returns the part of a plan along a tree of the network without evidence, nil for any other plan.
func JunctionOf(plan *btn.Plan) *Junction {
	p, _ := plan.Estimates[0].Parts[0].(*Junction)
	return p
}

// JunctionPlan searches a tree for all queries of a network, of a shape. It says no where there is none (junction.Shape), where it takes
// more than policy.JunctionFlops, and where its tables or those of marginals take more than policy.JunctionBytes or the memory given.
func JunctionPlan(
	ctx context.Context, net *btn.Network, shape contractionorder.Hypergraph, s query.Settings,
) (plan *btn.Plan, ok bool, err error) {
	if overOne(shape) > junction.MostLeaves {
		return nil, false, nil
	}
	h, ok := junction.Shape(net)
	if !ok {
		return nil, false, nil
	}
	found, err := contractionorder.Search(ctx, h, contractionorder.Options{
		Seed:    s.Seed,
		Moves:   min(policy.JunctionMoves, proposal.MoveLimit(s)),
		Effort:  policy.MarginalRate / policy.MoveCost,
		Threads: searchThreads,
	})
	if fault.CodeOf(err) == fault.OverBudget || err == nil && len(found.Slices) > 0 {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	cost, marginals := junction.Price(h, found.Tree)
	if cost.Flops > policy.JunctionFlops || marginals.Bytes > min(policy.JunctionBytes, float64(s.Memory)) {
		return nil, false, nil
	}
	return proposal.Exact(cost, &Junction{Tables: found.Tree.Leaves, Merges: flatten(found.Tree.Merges), Flops: cost.Flops}), true, nil
}

// overOne counts the tables over more than one index: weights are over one.
func overOne(shape contractionorder.Hypergraph) (tables int) {
	for _, scope := range shape.Edges {
		if len(scope) > 1 {
			tables++
		}
	}
	return tables
}

// Propose fills the assignment of a query, whose price is that of all tables, as if they were not known, and of the derivatives that its
// targets need.
func (p *Junction) Propose(j *proposal.Job, to *btn.Assignment, ask proposal.Ask) (*btn.Assignment, error) {
	cost := to.Plan.Estimates[0].Cost
	if ask.Marginals {
		cost = junction.WithMarginals(cost)
	}
	if prices := p.prices(j); prices != nil {
		cost.Flops = prices.Of(targets(j.Net, ask))
	}
	to.Cost = &cost
	return to, nil
}

// pricesSlot is that of the prices of a tree.
type pricesSlot struct{ first, last, count int }

// prices are those of the tree, nil where the network has none.
func (p *Junction) prices(j *proposal.Job) *junction.Prices {
	slot := pricesSlot{count: len(p.Merges)}
	if slot.count > 0 {
		slot.first, slot.last = p.Merges[0], p.Merges[slot.count-1]
	}
	prices, _ := proposal.Fact(j.Facts, slot, func() (*junction.Prices, error) {
		prices, _ := junction.NewPrices(j.Net, p.tree())
		return prices, nil
	})
	return prices
}

// targets lists the variables whose marginals are asked for.
func targets(net *btn.Network, ask proposal.Ask) []int {
	if !ask.Marginals || len(ask.Targets) > 0 {
		return ask.Targets
	}
	all := make([]int, len(net.Variables))
	for v := range all {
		all[v] = v
	}
	return all
}

// trees are those of all networks of the process, by identity: nobody finds another's who has not the same network.
var trees junction.Trees

// Contract implements contraction.Contractor.
func (p *Junction) Contract(ctx context.Context, of *problem.Problem, want btn.Want) (btn.Value, error) {
	values, errs, err := p.ContractAll(ctx, []*problem.Problem{of}, []btn.Want{want})
	if err != nil {
		return btn.Value{}, err
	}
	return values[0], errs[0]
}

// Lanes implements contraction.Batcher.
func (*Junction) Lanes() int { return junction.Lanes }

// ContractAll implements contraction.Batcher. A query whose numbers are beyond the tree's is contracted by itself, along an order of its
// own.
func (p *Junction) ContractAll(
	ctx context.Context, of []*problem.Problem, wants []btn.Want,
) (values []btn.Value, errs []error, err error) {
	values, errs = make([]btn.Value, len(of)), make([]error, len(of))
	runs := make([]run, len(of))
	queries := make([]junction.Query, len(of))
	for k, each := range of {
		if errs[k] = contraction.NoJoint(wants[k]); errs[k] == nil {
			runs[k], errs[k] = begin(ctx, each, wants[k])
		}
		queries[k].Net = each.Net
		if runs[k].M != nil {
			queries[k].Marginals, queries[k].Targets = runs[k].M.At, wants[k].Targets
		}
	}
	answers, err := p.run(ctx, of[0], queries)
	if err != nil {
		return nil, nil, err
	}
	for k, j := range runs {
		switch {
		case errs[k] != nil:
		case answers == nil || !answers[k].OK:
			values[k], errs[k] = j.alone()
		default:
			values[k] = btn.Value{Z: answers[k].Z, Flops: answers[k].Flops}
			if j.M != nil {
				values[k].Marginals = j.M.Result(scaled.One)
			}
		}
	}
	return values, errs, nil
}

// run answers queries along the tree; nil where the network has none.
func (p *Junction) run(ctx context.Context, of *problem.Problem, queries []junction.Query) ([]junction.Answer, error) {
	if of.Base == nil {
		return nil, nil
	}
	t, ok := trees.Of(of.Base, p.tree())
	if !ok {
		return nil, nil
	}
	return t.Run(ctx, queries, junction.Options{Threads: of.Threads, Memory: of.Memory})
}

// alone contracts a network along its min-fill order.
func (j run) alone() (btn.Value, error) {
	if j.M != nil {
		clear(j.M.At)
	}
	shape, err := lower.Shape(j.Ctx, j.Net)
	if err != nil {
		return btn.Value{}, err
	}
	order, err := contractionorder.MinFill(j.Ctx, shape)
	if err != nil {
		return btn.Value{}, err
	}
	return j.eliminate(order)
}
