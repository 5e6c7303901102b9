package exact

// C = B along a tree of the network without evidence, which serves all its queries.

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

// Junction is B itself, contracted along a tree over the tables of the network without evidence (package junction). Evidence only changes
// weights, so that one tree serves all queries.
type Junction struct {
	Tables int     `msgpack:"tables"` // leaves of the tree
	Merges []int   `msgpack:"merges"` // two tables per merge; merge k makes table Tables+k
	Flops  float64 `msgpack:"flops"`  // of Z, if evidence changes all tables
}

// Class implements Part.
func (*Junction) Class() btn.Class { return btn.ClassJunction }

// About implements btn.Part.
func (*Junction) About() btn.About { return btn.About{KeepsRange: true} }

// Fits implements Part: it returns an error if the numbers of the tree are impossible. Merges has two tables for each merge. Whether the
// tree is over the tables of the network is checked by the contraction.
func (p *Junction) Fits(*btn.Network) error {
	if !(p.Flops >= 0) || len(p.Merges)%2 != 0 || p.Tables < 1 {
		return btn.Misfit("a tree of %d tables and %d merged ones, %v flops", p.Tables, len(p.Merges), p.Flops)
	}
	return nil
}

// Cost implements contraction.Priced.
func (p *Junction) Cost(*problem.Problem) query.Cost { return query.Cost{Flops: p.Flops} }

// tree returns the tree in the form of package contractionorder.
func (p *Junction) tree() contractionorder.Tree {
	return tree(&Tree{Tables: p.Tables, Merges: p.Merges})
}

// JunctionOf returns the part of a plan along a tree of the network without evidence. It returns nil for any other plan.
func JunctionOf(plan *btn.Plan) *Junction {
	p, _ := plan.Estimates[0].Parts[0].(*Junction)
	return p
}

// JunctionPlan searches a contraction tree that serves all queries of a network, and returns a plan with it. shape is that of the
// network. ok is false if the network has no such tree (junction.Shape) or too many tables, if the tree would be sliced or takes more
// than policy.JunctionFlops, or if the tables of marginals take more than policy.JunctionBytes or the memory.
func JunctionPlan(
	ctx context.Context, net *btn.Network, shape contractionorder.Hypergraph, s query.Settings,
) (plan *btn.Plan, ok bool, err error) {
	if countWideTables(shape) > junction.MaxLeaves { // tables over one index do not count: they are weights of it
		return nil, false, nil
	}
	h, ok := junction.Shape(net)
	if !ok {
		return nil, false, nil
	}
	searchResult, err := contractionorder.Search(ctx, h, contractionorder.Options{
		Seed:    s.Seed,
		Moves:   min(policy.JunctionMoves, proposal.MoveLimit(s)),
		Effort:  policy.MarginalRate / policy.MoveCost, // how many moves it is worth to save one flop of Z, with marginals
		Threads: searchThreads,
	})
	isOverBudget := err != nil && fault.CodeOf(err) == fault.OverBudget
	isSliced := err == nil && len(searchResult.Slices) > 0
	if isOverBudget || isSliced {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	cost, marginals := junction.Price(h, searchResult.Tree) // of Z, and of Z with marginals
	if cost.Flops > policy.JunctionFlops || marginals.Bytes > min(policy.JunctionBytes, float64(s.Memory)) {
		return nil, false, nil
	}
	tree := &Junction{Tables: searchResult.Tree.Leaves, Merges: flatten(searchResult.Tree.Merges), Flops: cost.Flops}
	return proposal.ExactPlan(cost, tree), true, nil
}

// countWideTables returns the number of tables over more than one index. All others are weights.
func countWideTables(shape contractionorder.Hypergraph) (tables int) {
	for _, scope := range shape.Edges {
		if len(scope) > 1 {
			tables++
		}
	}
	return tables
}

// Propose returns the assignment of a query along the tree, with its price: that of all tables of the tree, as if none were known from
// queries before, and of the derivatives that the marginals of its targets need.
func (p *Junction) Propose(j *proposal.Job, assignment *btn.Assignment, ask proposal.Ask) (*btn.Assignment, error) {
	cost := assignment.Plan.Estimates[0].Cost
	if ask.Marginals {
		cost = junction.WithMarginals(cost)
	}
	if prices := p.pricesOn(j); prices != nil { // otherwise the network has no such tree, and the price of the plan stays
		cost.Flops = prices.FlopsWithMarginals(targets(j.Net, ask))
	}
	assignment.Cost = &cost
	return assignment, nil
}

// pricesSlot identifies a tree among the facts of a network, by its first and last merge and their number.
type pricesSlot struct{ first, last, count int }

// pricesOn returns the prices of queries along the tree, which are remembered among the facts of the network. It returns nil if the
// network has no such tree.
func (p *Junction) pricesOn(j *proposal.Job) *junction.Prices {
	// A tree is identified by its first and last merge and their number.
	slot := pricesSlot{count: len(p.Merges)}
	if slot.count > 0 {
		slot.first, slot.last = p.Merges[0], p.Merges[slot.count-1]
	}
	prices, _ := proposal.Fact(context.Background(), j.Facts, slot, func() (*junction.Prices, error) {
		prices, _ := junction.NewPrices(j.Net, p.tree()) // nil if there is no such tree
		return prices, nil
	})
	return prices
}

// targets lists the variables whose marginals are asked for.
func targets(net *btn.Network, ask proposal.Ask) []int {
	if !ask.Marginals || len(ask.Targets) > 0 {
		return ask.Targets
	}
	variables := make([]int, len(net.Variables))
	for v := range variables {
		variables[v] = v
	}
	return variables
}

// trees has the trees of all networks of the process, by the identity of the network: a job finds only the trees of its network.
var trees junction.Trees

// Contract implements contraction.Contractor.
func (p *Junction) Contract(ctx context.Context, pr *problem.Problem, want btn.Want) (btn.Value, error) {
	values, errs, err := p.ContractAll(ctx, []*problem.Problem{pr}, []btn.Want{want})
	if err != nil {
		return btn.Value{}, err
	}
	return values[0], errs[0]
}

// Lanes implements contraction.Batcher.
func (*Junction) Lanes() int { return junction.Lanes }

// ContractAll implements contraction.Batcher: it contracts the networks of several queries together along the tree. values[k] or errs[k] is
// the result of query k. If the numbers of a query are beyond the range of the tree, its network is contracted separately, along an
// elimination order (contractByMinFill). The field Marginals of a run collects marginals; it is nil if the query wants none.
func (p *Junction) ContractAll(
	ctx context.Context, problems []*problem.Problem, wants []btn.Want,
) (values []btn.Value, errs []error, err error) {
	values, errs = make([]btn.Value, len(problems)), make([]error, len(problems))
	runs := make([]run, len(problems))
	queries := make([]junction.Query, len(problems))
	for k, pr := range problems {
		if errs[k] = contraction.RefuseJoint(wants[k]); errs[k] == nil {
			runs[k], errs[k] = begin(ctx, pr, wants[k])
		}
		queries[k].Net = pr.Net
		if runs[k].Marginals != nil {
			queries[k].Marginals, queries[k].Targets = runs[k].Marginals.At, wants[k].Targets
		}
	}

	answers, err := p.runTree(ctx, problems[0], queries)
	if err != nil {
		return nil, nil, err
	}
	for k, j := range runs {
		switch {
		case errs[k] != nil: // its value stays empty
		case answers == nil || !answers[k].OK: // no tree, or numbers beyond its range
			values[k], errs[k] = j.contractByMinFill()
		default:
			values[k] = btn.Value{Z: answers[k].Z, Flops: answers[k].Flops}
			if j.Marginals != nil {
				values[k].Marginals = j.Marginals.Result(scaled.One)
			}
		}
	}
	return values, errs, nil
}

// runTree answers queries along the tree, a contraction tree over the network without evidence. pr is the problem of one of the queries.
// All queries have the same network without evidence, pr.Base. It returns nil if pr.Base is not known, or if the tree does not fit it.
func (p *Junction) runTree(ctx context.Context, pr *problem.Problem, queries []junction.Query) ([]junction.Answer, error) {
	if pr.Base == nil {
		return nil, nil
	}
	t, ok := trees.Compiled(pr.Base, p.tree())
	if !ok {
		return nil, nil
	}
	return t.Run(ctx, queries, junction.Options{Threads: pr.Threads, Memory: pr.Memory})
}

// contractByMinFill contracts the network of a query along the min-fill order of its shape under the evidence. Marginals that a run along
// the tree has collected before it failed are discarded.
func (j run) contractByMinFill() (btn.Value, error) {
	if j.Marginals != nil {
		clear(j.Marginals.At)
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
