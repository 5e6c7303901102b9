package truncated

// Plans: their form in messages, the search for them, and their cost.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/methods/truncated/sweeps"
	"github.com/basetensor/basetensor/internal/methods/truncated/trees"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// SearchOptions bound a search for plans.
type SearchOptions struct {
	Bond   int // at which plans are compared
	Memory int64
	Seed   uint64
	// Marginals: marginals are wanted. Then a tree is only for contractions without any truncation: its projectors keep a table as it is
	// under its present weights, and drop directions, also null ones, that other values of a variable would need. A sweep has a backward
	// pass that truncates separately.
	Marginals bool
	// Moves bounds the search, in operations of about a nanosecond; 0: 2^30.
	Moves int64
}

// truncatedMoves and truncatedLeast bound one search for plans, truncatedSearches is their maximum
// number.
// Measured: a quarter of the moves makes 2 of 5 models worse, none better; one search in place of
// three (that is three times the moves) 6 of 14 better, none worse, decision 20. At most a second,
// and four milliseconds, which 113 of 115 models exceed.
const (
	truncatedMoves    int64 = 1 << 30
	truncatedLeast    int64 = 1 << 22
	truncatedSearches       = 3
)

// unequal is the largest ratio of the flops of a tree and a sweep, either way, for which both are planned, to be compared.
// Measured: 1 makes 1 of 4 models better, none worse; 16 makes 1 of 7 worse, decision 20. Why
// there are two plans: decision 14.
const unequal = 4

// Search returns one or two plans, the one to trust most first:
//
// If a tree truncates nothing, it is the only plan. If a tree and a sweep take about as many flops, both are plans, the cheaper one
// first. If one of them takes far fewer, the plans are two of that kind, from different seeds, or the reverse of a sweep. If no tree fits
// the memory, or marginals are wanted and it truncates, the plans are two sweeps.
//
// The search is counted in moves, about as many as the contraction takes flops, and depends only on the hypergraph, SignsKeySuffix and the
// options. If ctx has a deadline, it ends the search: the tree has a third of the time and the first sweep half of the rest, the best
// plans by then are returned, and isComplete is false. Errors: over budget if no plan fits the memory at this bond; the context's if
// there is no plan.
func (p *Prepared) Search(ctx context.Context, o SearchOptions) (plans []TruncatedPlan, isComplete bool, err error) {
	s := planSearch{p: p, o: o, isComplete: true}
	if s.moves, err = p.searchMoves(ctx, o); err != nil {
		return nil, false, err
	}

	// A tree, in a third of the time. If it truncates nothing, no other plan is needed.
	tree, treeErr := s.findTree(ctx, o.Seed, 1.0/3)
	if treeErr == nil && o.Marginals {
		treeErr = p.checkForMarginals(ctx, &tree.plan, o)
	}
	if treeErr == nil && tree.loss == 0 {
		return []TruncatedPlan{tree.plan}, s.isComplete, nil
	}

	// A sweep, in half of the rest; then the other plan of the pair.
	sweep, sweepErr := s.findSweep(ctx, o.Seed, 1.0/2)
	switch hasNone := treeErr != nil && sweepErr != nil; {
	case errors.Is(ctx.Err(), context.Canceled), hasNone && ctx.Err() != nil:
		return nil, false, ctx.Err()
	case hasNone:
		return nil, s.isComplete, sweepErr
	case sweepErr != nil:
		return []TruncatedPlan{tree.plan}, s.isComplete, nil
	case treeErr != nil:
		plans = s.pairSweeps(ctx, sweep)
	default:
		plans = s.choosePair(ctx, tree, sweep)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, false, ctx.Err()
	}
	return plans, s.isComplete, nil
}

// searchMoves returns the number of moves of each search for a plan: about as many as a greedy sweep takes flops, within limits.
func (p *Prepared) searchMoves(ctx context.Context, o SearchOptions) (int64, error) {
	greedy, _ := p.PriceGreedy(ctx, o.Bond, o.Memory, o.Seed) // there is a price even if the plan does not fit the memory
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	limit := truncatedMoves
	if o.Moves > 0 {
		limit = min(limit, max(1, o.Moves/truncatedSearches)) // o.Moves is for all searches, at most truncatedSearches
	}
	return min(max(truncatedLeast, int64(min(greedy.Flops, float64(truncatedMoves)))), limit), nil
}

// checkForMarginals returns an error if a tree is no plan for marginals: if it truncates, or takes more than the memory of o.
func (p *Prepared) checkForMarginals(ctx context.Context, tree *TruncatedPlan, o SearchOptions) error {
	const marginals = true
	c, err := p.Price(ctx, tree, o.Bond, marginals)
	if err != nil || !c.Lossless || c.Bytes > float64(o.Memory) {
		return errTruncates
	}
	return nil
}

// planSearch is what the searches for single plans in one call of Search share.
type planSearch struct {
	p          *Prepared
	o          SearchOptions
	moves      int64 // of one search
	isComplete bool  // no search so far was cut short by its context
}

// findTree searches a tree for a share of the time until the deadline of ctx.
func (s *planSearch) findTree(ctx context.Context, seed uint64, share float64) (priced, error) {
	o := s.o
	o.Seed = seed
	return s.run(ctx, share, func(limited context.Context) (priced, error) { return s.p.searchTree(limited, o, s.moves) })
}

// findSweep searches a sweep for a share of the time until the deadline of ctx.
func (s *planSearch) findSweep(ctx context.Context, seed uint64, share float64) (priced, error) {
	return s.run(ctx, share, func(limited context.Context) (priced, error) { return s.p.searchSweep(limited, s.o, seed, s.moves) })
}

// run runs a search for a share of the time until the deadline of ctx. If that time ends first, isComplete becomes false, and the best plan
// that was found before is returned without an error.
func (s *planSearch) run(ctx context.Context, share float64, search func(context.Context) (priced, error)) (priced, error) {
	limited, cancel := withTimeShare(ctx, share)
	defer cancel()
	best, err := search(limited)
	if ctxErr := limited.Err(); ctxErr != nil {
		s.isComplete = false
		isLate := errors.Is(err, ctxErr) && errors.Is(ctxErr, context.DeadlineExceeded)
		if isLate && best.hasPlan() {
			err = nil
		}
	}
	return best, err
}

// choosePair returns two plans to compare, given the best tree and the best sweep: these two, the cheaper one first. If one of them takes
// more than unequal times the flops of the other, both plans are of the cheaper kind, the second one from another search.
func (s *planSearch) choosePair(ctx context.Context, tree, sweep priced) []TruncatedPlan {
	switch {
	case tree.flops > unequal*sweep.flops:
		return s.pairSweeps(ctx, sweep)
	case sweep.flops > unequal*tree.flops:
		second, err := s.findTree(ctx, s.o.Seed+1, 1) // 1: all of the remaining time
		if err != nil {
			second = sweep // there is no other tree
		}
		return []TruncatedPlan{tree.plan, second.plan}
	case sweep.flops <= tree.flops:
		return []TruncatedPlan{sweep.plan, tree.plan}
	default:
		return []TruncatedPlan{tree.plan, sweep.plan}
	}
}

// pairSweeps returns a sweep and one of another seed, or its own reverse if there is no other.
func (s *planSearch) pairSweeps(ctx context.Context, sweep priced) []TruncatedPlan {
	second, err := s.findSweep(ctx, s.o.Seed+1, 1)
	if err != nil || slices.Equal(second.plan.Order, sweep.plan.Order) {
		second.plan = reverseSweep(sweep.plan)
	}
	return []TruncatedPlan{sweep.plan, second.plan}
}

// withTimeShare returns a context that ends after a share of the time until the deadline of ctx. It returns ctx if that has no deadline.
func withTimeShare(ctx context.Context, share float64) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Duration(share*float64(time.Until(deadline))))
}

// errTruncates refuses a tree that truncates if marginals are wanted.
var errTruncates = fault.New(fault.OverBudget, "truncated: marginals along a tree need one that truncates nothing")

// priced is a plan with its cost at the bond of the search.
type priced struct {
	plan  TruncatedPlan
	flops float64
	loss  float64 // trees.Cost.Loss: 0 if nothing is truncated, so that the contraction is exact up to rounding
}

// hasPlan reports whether a plan was found.
func (f priced) hasPlan() bool { return len(f.plan.Order) > 0 || len(f.plan.Tree) > 0 }

// sweepMove is the number of moves (SearchOptions.Moves) in the time of one move of the search for a sweep.
// Measured: a quarter and four times of it change 17 and 21 of 26 models, without a direction,
// decision 20.
const sweepMove = 64

// searchSweep returns the best sweep that a search of the given number of moves finds (SearchOptions.Moves), with its price.
func (p *Prepared) searchSweep(ctx context.Context, o SearchOptions, seed uint64, moves int64) (priced, error) {
	schedule, cost, err := sweeps.Search(ctx, p.Hypergraph(),
		sweeps.SearchOptions{Bond: o.Bond, Memory: p.absolute.freeMemory(o.Memory), Seed: seed, Moves: max(moves/sweepMove, 1)})
	plan := TruncatedPlan{Family: query.FamilySweep, Shape: p.Shape(), Order: schedule.Order, Position: schedule.Position}
	return priced{plan: plan, flops: cost.Flops}, p.absolute.explain(err)
}

// treeRate is the number of flops of a sweep in the time of one along a tree of truncated legs:
// large tensors are permuted.
// Measured when trees were priced; no command repeats it.
const treeRate = 4

// searchTree returns the best tree that a search of the given number of moves finds, with its price. If there is an error, that is the best
// tree before it, if any. The flops of the price are treeRate times those of the tree: as many as a sweep does in the same time. If an
// entry is below 0, the tables are held for a second contraction: freeMemory subtracts their bytes, and
// explain says so in an error.
func (p *Prepared) searchTree(ctx context.Context, o SearchOptions, moves int64) (priced, error) {
	schedule, cost, err := trees.Search(ctx, p.Hypergraph(),
		trees.SearchOptions{Bond: o.Bond, Memory: p.absolute.freeMemory(o.Memory), Seed: o.Seed, Moves: moves})
	hasTree := schedule.Tables > 0
	if err = p.absolute.explain(err); err != nil && !hasTree {
		return priced{}, err
	}
	plan := TruncatedPlan{Family: query.FamilyTree, Shape: p.Shape(), Tree: encodeTree(schedule)}
	return priced{plan: plan, flops: treeRate * cost.Flops, loss: cost.Loss}, err
}

// reverseSweep returns the sweep that sums the indices in the reverse order.
func reverseSweep(p TruncatedPlan) TruncatedPlan {
	p.Order = slices.Clone(p.Order)
	slices.Reverse(p.Order)
	return p
}

// Cost is the price of a contraction along a plan at a bond: predicted flops, counted as flops of a sweep, and the largest number of bytes.
type Cost struct {
	legs.Cost
	Lossless bool // the plan is a tree, and nothing is truncated
}

// smallBond is the bond below which a flop of a sweep takes longer, in proportion to one over the bond, since matrices are small.
// Measured by CPU time on a grid of 40×40, a complete and a three-dimensional model: 5 to 7 times at bond 4, 3 to 4 at 8, 2.2 at 16,
// 1.1 at 20, decision 26.
const smallBond = 32

// Price predicts the cost of a contraction along a plan at a bond, with marginals if they are wanted. With marginals nothing is truncated
// along a tree. If an entry is below 0, the contraction of absolute values is part of it. Errors: plans that contradict themselves; the
// context's.
func (p *Prepared) Price(ctx context.Context, plan *TruncatedPlan, bond int, marginals bool) (Cost, error) {
	if plan.Family == query.FamilySweep {
		return p.priceSweep(ctx, plan, bond, marginals)
	}
	return p.priceTree(plan, bond, marginals)
}

// priceSweep predicts the cost of a contraction along a sweep at a bond, with marginals if they are wanted. Flops at a bond below smallBond
// count as more, since they take longer. If an entry is below 0, the contraction of absolute values is part of the cost.
func (p *Prepared) priceSweep(ctx context.Context, plan *TruncatedPlan, bond int, marginals bool) (Cost, error) {
	h := p.Hypergraph()
	schedule := sweepPlan(plan).Restrict(h.Dims)
	cost, err := sweeps.Evaluate(ctx, h, schedule, bond, marginals)
	absoluteCost := cost                           // of the contraction of absolute values, which has no marginals
	if marginals && p.absolute > 0 && err == nil { // p.absolute: the bytes of the tables; 0 if no entry is below 0
		const noMarginals = false
		absoluteCost, err = sweeps.Evaluate(ctx, h, schedule, bond, noMarginals)
	}
	cost = p.absolute.addCost(cost, absoluteCost)
	cost.Flops *= max(1, smallBond/float64(bond))
	return Cost{Cost: cost}, err
}

// priceTree predicts the cost of a contraction along a tree at a bond, with marginals if they are wanted; then nothing is truncated. If an
// entry is below 0, the contraction of absolute values is part of the cost.
func (p *Prepared) priceTree(plan *TruncatedPlan, bond int, marginals bool) (Cost, error) {
	schedule, err := decodeTree(plan.Tree)
	if err != nil {
		return Cost{}, err
	}
	if marginals {
		bond = mostBond // truncates nothing
	}
	treeCost, err := trees.Evaluate(p.Hypergraph(), schedule, bond)
	cost := Cost{Cost: treeCost.Cost, Lossless: treeCost.Loss == 0}
	if marginals {
		cost.Flops *= policy.MarginalRate
		cost.Bytes = treeCost.MarginalBytes
	}
	cost.Cost = p.absolute.addCost(cost.Cost, treeCost.Cost)
	cost.Flops *= treeRate // as flops of a sweep, which take less time each
	return cost, err
}

// sweepPlan returns a plan in the form of package sweeps.
func sweepPlan(plan *TruncatedPlan) sweeps.Plan {
	return sweeps.Plan{Order: plan.Order, Position: plan.Position}
}

// mostBond is larger than all bonds, so that nothing is truncated.
const mostBond = 1 << 20

// CheckShape returns ErrOtherNetwork (fault.Internal) if the plan was made for a simplified network of another shape. p must not be under a
// mask, weights of values by which evidence enters: a mask fixes indices and so changes the shape, and plans are for the shape without it.
func (p *Prepared) CheckShape(plan *TruncatedPlan) error {
	if shape := p.Shape(); plan.Shape != shape {
		return fault.Wrap(fault.Internal, fmt.Errorf("%w: shape %.12s, planned for %.12s", ErrOtherNetwork, shape, plan.Shape))
	}
	return nil
}

// encodeTree returns a plan of package trees as five lists for messages: the number of tables, hosts, copies, wires (three numbers each)
// and merges (two each).
func encodeTree(p trees.Plan) [][]int {
	var wires, merges []int
	for _, w := range p.Wires {
		wires = append(wires, w[:]...)
	}
	for _, m := range p.Merges {
		merges = append(merges, m[:]...)
	}
	return [][]int{{p.Tables}, p.Hosts, p.Copies, wires, merges}
}

// decodeTree returns the plan that encodeTree has written as five lists: the number of tables, hosts, copies, wires (three numbers each)
// and merges (two each).
func decodeTree(lists [][]int) (trees.Plan, error) {
	if len(lists) != 5 || len(lists[0]) != 1 || len(lists[3])%3 != 0 || len(lists[4])%2 != 0 {
		return trees.Plan{}, fault.New(fault.BadInput, "truncated: %d lists are no tree", len(lists))
	}
	p := trees.Plan{Tables: lists[0][0], Hosts: lists[1], Copies: lists[2]}
	for w := lists[3]; len(w) > 0; w = w[3:] {
		p.Wires = append(p.Wires, [3]int(w[:3]))
	}
	for m := lists[4]; len(m) > 0; m = m[2:] {
		p.Merges = append(p.Merges, [2]int(m[:2]))
	}
	return p, nil
}

// GreedySweeps returns the sweep that a search of one move finds, and the same sweep in reverse. It takes milliseconds for a thousand
// tables.
func (p *Prepared) GreedySweeps(ctx context.Context, o SearchOptions) ([]TruncatedPlan, error) {
	const moves = 1
	sweep, err := p.searchSweep(ctx, o, o.Seed, moves)
	if err != nil {
		return nil, err
	}
	return []TruncatedPlan{sweep.plan, reverseSweep(sweep.plan)}, nil
}

// SearchSweep returns the best sweep that a search of o.Moves finds. The error is over budget if none fits the memory at this bond.
func (p *Prepared) SearchSweep(ctx context.Context, o SearchOptions) (TruncatedPlan, error) {
	sweep, err := p.searchSweep(ctx, o, o.Seed, o.Moves)
	return sweep.plan, err
}

// PriceGreedy returns the price of the sweep that a search of one move finds.
func (p *Prepared) PriceGreedy(ctx context.Context, bond int, memory int64, seed uint64) (Cost, error) {
	o := sweeps.SearchOptions{Bond: bond, Memory: p.absolute.freeMemory(memory), Seed: seed, Moves: 1}
	_, c, err := sweeps.Search(ctx, p.Hypergraph(), o)
	return Cost{Cost: p.absolute.addCost(c, c)}, p.absolute.explain(err)
}
