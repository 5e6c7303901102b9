package contractionorder

// Search: the plan of a contraction within a memory budget.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// ErrMemory is wrapped by the error of a search that found no slices
// with which a contraction fits the memory. The code of the error is fault.OverBudget.
var ErrMemory = errors.New("contractionorder: over the memory budget")

// Options of a search. The zero value works.
type Options struct {
	Seed   uint64  // of all random numbers
	Memory int64   // limit of Cost.PeakBytes, in bytes; 0: query.DefaultMemory, 2 GiB
	Moves  int64   // approximate limit of elementary operations; 0: 2^32, some four seconds of one core
	Effort float64 // the number of moves that it is worth to save one flop; 0: 1/policy.MoveCost
	// WriteCost is the cost of writing and reading back an entry of a result,
	// in flops above 1; 0: 16.
	WriteCost float64
	Threads   int // goroutines, 1 or 2; 0: 1. The plan does not depend on it
}

// Plan is a contraction of a network along Tree, which is repeated for every combination of
// values of Slices.
type Plan struct {
	Tree   Tree
	Slices []int // sorted indices of the hypergraph
	Cost   Cost
	Moves  int64 // elementary operations of the search
}

const (
	cheapTreeFlops = 1e7 // the first tree is the plan if it costs fewer flops and fits the memory
	defaultMoves   = 1 << 32

	// An entry costs 8 bytes written, read and often permuted in between.
	// Meanwhile a core does some 16 flops.
	defaultWriteCost = 16

	// A piece of a tree is replaced by the optimal tree over its tables. As a rule it has pieceTables tables; in a tree that is cheaper
	// than all before, largePieceTables.
	pieceTables      = 8
	largePieceTables = 10
)

// Search returns a plan for h that holds at most Options.Memory bytes.
//
// It first improves the tree of the min-fill order: it replaces pieces of it by optimal trees. It returns that tree if it fits the memory
// and costs less than 10^7 flops. Otherwise it makes attempts, cheap ones first: it anneals trees from recursive bisection, from random
// greedy merging, and the best tree so far. It goes on as long as the next attempts are expected to save more than they cost; Effort is the
// worth of a flop in moves (elementary operations of the search), and WriteCost that of a written entry in flops. If a tree does not fit
// the memory, it slices indices, that is, fixes them to one value in each of several contractions, and anneals again. The price of a tree
// always has a penalty for tables over the limit.
//
// The plan depends only on h, Seed, Memory, Moves, Effort and WriteCost. Errors: ErrTree for an inconsistent hypergraph; ErrMemory, with
// the best plan found; that of the context.
func Search(ctx context.Context, h Hypergraph, o Options) (Plan, error) {
	if err := h.Validate(); err != nil {
		return Plan{}, err
	}

	// The search keeps a bit set of indices, of network.words words, for each tensor. With too many and too long sets there is no search.
	s := newSearch(ctx, h, o.withDefaults())
	isTooLarge := len(s.network.edges)*s.network.words > maxScopeWords
	if isTooLarge {
		return s.minFillOnly()
	}

	// Begin with the min-fill order, which is good enough for easy networks.
	plan, err := s.beginWithMinFill()
	if ctxErr := ctx.Err(); ctxErr != nil {
		return Plan{}, ctxErr // the context ended while plan was made, so that plan may be worse than it should be
	}
	isGoodEnough := plan.Cost.Flops < cheapTreeFlops && s.fits(plan)
	if err != nil || isGoodEnough {
		return plan, err
	}

	// Search for a better tree, and slice it if it does not fit the memory.
	s.runAttempts()
	if plan, err = s.fitIntoMemory(); err != nil {
		return Plan{}, err
	}
	if err := ctx.Err(); err != nil {
		return Plan{}, err
	}
	return plan, s.checkMemory(plan)
}

// withDefaults returns o with defaults in place of values that are not set.
func (o Options) withDefaults() Options {
	if o.Memory <= 0 {
		o.Memory = query.DefaultMemory
	}
	if o.Moves <= 0 {
		o.Moves = defaultMoves
	}
	if o.Effort <= 0 {
		o.Effort = 1 / policy.MoveCost
	}
	if !(o.WriteCost > 1) { // 1 or less, or NaN: the objective takes log2 of WriteCost − 1
		o.WriteCost = defaultWriteCost
	}
	return o
}

// checkMemory returns nil if a plan fits the memory budget. Otherwise it returns an error that wraps ErrMemory.
func (s *search) checkMemory(p Plan) error {
	if s.fits(p) {
		return nil
	}
	return fault.New(fault.OverBudget, "%w: %s with %d indices sliced, the budget is %d bytes",
		ErrMemory, bytesText(p.Cost.PeakBytes), len(p.Slices), s.options.Memory)
}

// bytesText returns the text about the bytes that a contraction needs for the error ErrMemory: as a power of 2 if there are very many.
func bytesText(bytes float64) string {
	if bytes > 1e15 {
		return fmt.Sprintf("a contraction needs 2^%.1f bytes",
			float64(log2Float(bytes))/float64(oneBit))
	}
	return fmt.Sprintf("a contraction needs %.0f bytes", bytes)
}

// search is the state of a search for the best tree over the network that reduction leaves.
type search struct {
	ctx        context.Context
	hypergraph Hypergraph
	options    Options  // complete: no value stands for a default
	reduced    *pool    // the whole network with the merges of the reduction made
	remaining  []int32  // by tensor of n: the number of the table in reduced
	network    *network // the network that reduction leaves
	objective  objective
	firstTree  *slicedTree // that of the min-fill order, reconfigured
	best       *slicedTree // so far
	price      log2Fixed   // log2 of the price of best, see score
	movesSpent int64       // so far, without those of trees under work
}

// newSearch returns a search that has no tree yet. First it makes the merges that a good tree makes anyway (reduce): those that make no
// table larger. The search is about the network of the tables that remain.
func newSearch(ctx context.Context, h Hypergraph, o Options) *search {
	s := &search{ctx: ctx, hypergraph: h, options: o}
	s.reduced = reduce(newSlicedNetwork(h, nil))
	s.network, s.remaining = s.reduced.remainingNetwork(h.Dims)
	s.network.ctx = ctx
	s.movesSpent = s.reduced.movesSpent
	s.objective = objective{
		// The price of a merge is 2 |U| − |S| flops and WriteCost · |S| for the write: 2 |U| + (WriteCost − 1) |S|.
		log2Write: log2Float(o.WriteCost - 1),
		limit:     s.tableLimit(),
		steepness: oneBit / 2, // a table 4 times as large as the limit doubles the price of its merge
	}
	return s
}

// tableLimit returns log2 of the number of entries that a table may have. The memory must hold the tensors of the network and two such
// tables.
func (s *search) tableLimit() log2Fixed {
	freeEntries := float64(s.options.Memory) / 8 // 8 bytes an entry
	for _, e := range s.hypergraph.Edges {
		size := 1.0
		for _, v := range e {
			size = finite(size * float64(s.hypergraph.Dims[v]))
		}
		freeEntries -= size
	}
	return log2Float(max(freeEntries, 1)) - oneBit // one bit less: half of the free entries for each of the two tables
}

// beginWithMinFill makes the tree of the min-fill order the first and the best tree of the search. Before that, parts of the tree with up
// to pieceTables tables are replaced by optimal trees. It returns the plan of the tree, which may be over the memory budget.
func (s *search) beginWithMinFill() (Plan, error) {
	order, err := s.network.minFillOrder(s.ctx)
	if err != nil {
		return Plan{}, err
	}
	tree := newWorkingTree(s.network, eliminateInOrder(s.network, order).mergeRemaining())
	newReconfigurer(tree, s.objective, pieceTables).run(s.worthOfTree(tree)) // no more work than it could save
	s.firstTree = &slicedTree{wholeNetwork: s.network, tree: tree}
	s.best = s.firstTree.copyWithoutMoves()
	s.price = s.score(s.best)
	s.movesSpent += tree.movesSpent + s.best.tree.movesSpent
	return s.bestPlan()
}

// minFillOnly returns the plan of the min-fill order without slices. It is for networks that are too large for a search: the scopes of
// their tables would need too many bit sets. If the plan does not fit the memory, the error wraps ErrMemory, and the plan is returned,
// too.
func (s *search) minFillOnly() (Plan, error) {
	order, err := s.network.minFillOrder(s.ctx)
	if err != nil {
		return Plan{}, err
	}
	pool := eliminateInOrder(s.network, order)
	if err := s.ctx.Err(); err != nil {
		return Plan{}, err
	}

	s.movesSpent += pool.movesSpent
	// mergeRemaining merges the tables that are left after all indices, and returns all merges of the pool.
	plan, err := s.makePlan(s.reduced.expand(s.remaining, pool.mergeRemaining()), nil)
	if err != nil {
		return Plan{}, err
	}
	return plan, s.checkMemory(plan)
}

// fitIntoMemory returns the plan of the best tree, sliced until it fits the memory. Slices may be needed although each table is below the
// limit, since several tables are held at once. A tree that was sliced here is improved once more. If no index is left to slice, the plan
// that is returned does not fit. After each index that is sliced the tree is improved. The limit of the moves (elementary operations) for
// that is 1/finishShare of the moves that the whole price of the tree is worth.
func (s *search) fitIntoMemory() (Plan, error) {
	moves := max(s.worthInMoves(s.price)/finishShare, 1)
	s.best.tree.movesSpent = 0 // so that only new moves are added to s.movesSpent below
	plan, hasChanged, err := s.sliceUntilFits(moves)
	s.movesSpent += s.best.tree.movesSpent
	if err != nil || !hasChanged || s.ctx.Err() != nil {
		return plan, err
	}
	return s.improveFitting(plan, moves), nil
}

// sliceUntilFits slices indices of the largest table of the best tree until the plan fits the memory or the search ends, and returns the
// plan. After each index it replaces pieces of the tree by optimal trees, with the given number of moves (elementary operations).
// hasChanged tells the caller whether to go on with the new tree. It is false if the plan fits without slicing; it is also false if no
// index is left to slice, so that the plan does not fit.
func (s *search) sliceUntilFits(moves int64) (plan Plan, hasChanged bool, err error) {
	plan, err = s.bestPlan()
	for err == nil && !s.fits(plan) && s.ctx.Err() == nil {
		tighter := s.objective
		tighter.limit = s.best.tree.log2Largest() - 1 // only the largest tables are over this limit
		index := none
		if tighter.limit >= 0 && s.best.log2Slices() <= maxLog2Slices {
			index = s.best.bestSlice(&tighter)
		}
		if index == none {
			return plan, false, nil
		}

		hasChanged = true
		s.best = s.best.withSlices(append(slices.Clone(s.best.sliced), index))
		newReconfigurer(s.best.tree, s.objective, pieceTables).run(s.best.tree.movesSpent + moves)
		plan, err = s.bestPlan()
	}
	return plan, hasChanged, err
}

// improveFitting tries to improve the best tree, whose plan is the given one and fits the memory. It anneals a copy of the tree until its
// moves (elementary operations) reach the given number. Then it takes indices out of the slices where the limit of the tables allows that.
// If the plan of the copy fits and is cheaper, the copy becomes the best tree and its plan is returned. Otherwise the given plan is
// returned.
func (s *search) improveFitting(plan Plan, moves int64) Plan {
	fitting := s.best
	s.best = &slicedTree{wholeNetwork: s.network, tree: fitting.tree.clone(), sliced: fitting.sliced}
	// Attempts have small numbers in place of 1<<63, so their random numbers are others. The temperature begins at 1/4 bit.
	s.annealAndReconfigure(s.best, oneBit/4, moves, rand.NewPCG(s.options.Seed, 1<<63))
	s.best.removeSlices(&s.objective)
	s.movesSpent += s.best.tree.movesSpent

	improved, err := s.bestPlan()
	isCheaper := improved.Cost.price(s.options.WriteCost) < plan.Cost.price(s.options.WriteCost)
	if err == nil && s.fits(improved) && isCheaper {
		return improved
	}

	s.best = fitting
	plan.Moves = s.movesSpent
	return plan
}

// minFillOrder returns the min-fill order of the network, in indices of the hypergraph from which it was made. The network has its own
// numbers for the indices: number v is that of the index indexOf[v]. Numbers that no index has get dimension 1, and so are in no order.
// The numbers v of one word v/64 have the same dimension, wordDim of the word.
func (n *network) minFillOrder(ctx context.Context) ([]int, error) {
	h := Hypergraph{Dims: make([]int, len(n.indexOf)), Edges: make([][]int, len(n.edges))} // its indices are numbers
	for v := range h.Dims {
		h.Dims[v] = 1
	}
	for t, edge := range n.edges {
		for _, v := range edge {
			h.Dims[v] = n.wordDim[v>>6]
			h.Edges[t] = append(h.Edges[t], int(v))
		}
	}

	order, err := MinFill(ctx, h)
	if err != nil {
		return nil, err
	}
	for i, v := range order {
		order[i] = n.indexOf[v]
	}
	return order, nil
}

// worthOfTree returns the number of moves (elementary operations) that the search may spend to save the whole price of w. It is at most the
// limit of the search.
func (s *search) worthOfTree(w *workingTree) int64 {
	return s.worthInMoves(w.log2TotalPrice(&s.objective))
}

// worthInMoves returns the number of moves (elementary operations) that the search may spend to save 2^price flops. It is at most the limit
// of the search.
func (s *search) worthInMoves(price log2Fixed) int64 {
	return int64(min(float64(s.options.Effort*pow2(price)), float64(s.options.Moves)))
}

// fits reports whether a plan is within the memory budget.
func (s *search) fits(p Plan) bool { return p.Cost.PeakBytes <= float64(s.options.Memory) }

// bestPlan returns the plan of the best tree for the whole network. The tree begins with the merges that the reduction made before the
// search. Then pieces of it are replaced by optimal trees. bestPlan returns the plan of the tree before these replacements in two cases:
// if only that plan fits the memory, or if the whole network is too large to search for replacements.
func (s *search) bestPlan() (Plan, error) {
	merges := s.reduced.expand(s.remaining, s.best.tree.merges())
	plan, err := s.makePlan(merges, s.best.sliced)
	if err != nil {
		return Plan{}, err
	}
	whole := newSlicedNetwork(s.hypergraph, plan.Slices)
	whole.ctx = s.ctx
	isTooLarge := len(whole.edges)*whole.words > maxScopeWords
	if isTooLarge {
		return plan, nil
	}

	tree := newWorkingTree(whole, merges)
	// The limit of elementary operations is a share of what the price of the tree is worth, but at least 2^16.
	newReconfigurer(tree, s.objective, pieceTables).run(max(s.worthOfTree(tree)/finishShare, 1<<16))
	s.movesSpent += tree.movesSpent

	improved, err := s.makePlan(tree.merges(), s.best.sliced)
	if err != nil {
		return Plan{}, err
	}
	if s.fits(plan) && !s.fits(improved) {
		return plan, nil
	}
	return improved, nil
}

// makePlan returns the plan of a tree over the whole network, and its cost. The tree is given by its merges, which makePlan puts into the
// sequence that needs the least memory. sliced lists the sliced indices as numbers of the reduced network s.network; the plan has those of
// the hypergraph.
func (s *search) makePlan(merges [][2]int, sliced []int32) (Plan, error) {
	plan := Plan{Slices: []int{}, Moves: s.movesSpent}
	for _, v := range sliced {
		plan.Slices = append(plan.Slices, s.network.indexOf[v])
	}
	slices.Sort(plan.Slices)

	tree, err := NewTree(len(s.hypergraph.Edges), merges)
	if err != nil {
		return Plan{}, err
	}

	if plan.Tree, err = Schedule(s.hypergraph, tree, plan.Slices); err != nil {
		return Plan{}, err
	}
	if plan.Cost, err = EvaluateTree(s.hypergraph, plan.Tree, plan.Slices); err != nil {
		return Plan{}, err
	}
	return plan, nil
}
